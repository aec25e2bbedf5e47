"""What `spark-submit` runs: the commands of `leasemq pipeline`, with Spark as it was submitted."""

import sys

from app.cli import main

if __name__ == "__main__":
    sys.exit(main(["pipeline", *sys.argv[1:]]))
