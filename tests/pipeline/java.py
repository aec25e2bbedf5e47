"""Java for processes of the tests."""

# What lives for seconds is started sooner without the optimising compiler.
SHORT_LIVED = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
