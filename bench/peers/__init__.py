"""Other queues, on the same machine and on the same PostgreSQL server where they use one."""
