# The service and nothing else: built in one stage, copied as a virtual environment into the other.
FROM python:3.11-slim AS build
WORKDIR /source
COPY pyproject.toml constraints.txt ./
COPY alembic alembic
COPY app app
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .
RUN python -m venv --without-pip /opt/leasemq \
    && pip --python /opt/leasemq/bin/python install --no-cache-dir --constraint constraints.txt /wheels/*.whl

FROM python:3.11-slim
RUN useradd --system --uid 10001 --create-home --home-dir /data leasemq
COPY --from=build /opt/leasemq /opt/leasemq
ENV PATH=/opt/leasemq/bin:$PATH
# Where the default SQLite file is made.
WORKDIR /data
USER leasemq
EXPOSE 8080
# The process alone: a database that is down is no reason to restart it.
HEALTHCHECK --interval=10s --timeout=5s --start-period=40s CMD ["python", "-c", \
    "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ.get('MQ_PORT', '8080') + '/healthz', timeout=4)"]
# To be reached from outside the container it needs MQ_HOST=0.0.0.0 and, as long as there are no keys, MQ_INSECURE=true.
# Both are for you to say: whoever reaches the port can use the queue.
CMD ["leasemq", "serve"]
