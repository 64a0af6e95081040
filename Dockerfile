# Any Debian-based image with Python 3.11 or newer will do. With a digest it is always the same one:
# --build-arg BASE=python:3.13-slim@sha256:...
ARG BASE=python:3.13-slim

FROM ${BASE} AS build

# Whether to compile the inner loops: 1 or 0. Without it the image is built within a minute.
ARG COMPILE=1
# Images whose Python is Debian's lack the headers for that.
RUN test "${COMPILE}" = 0 || { apt-get update \
 && apt-get install --yes --no-install-recommends gcc libc6-dev \
 && { python -c "import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path('include') + '/Python.h'))" \
      || apt-get install --yes --no-install-recommends libpython3-dev; } \
 && rm -rf /var/lib/apt/lists/*; }

# The dependencies come first: they change less often than the source. Their hashes are known.
WORKDIR /source
COPY docker/requirements.txt docker/requirements-build.txt ./docker/
RUN python -m venv --without-pip /opt/barnabas \
 && pip install --no-cache-dir --require-hashes --requirement docker/requirements-build.txt \
 && pip --python /opt/barnabas/bin/python install --no-cache-dir --require-hashes --requirement docker/requirements.txt

COPY . .
# How much the C compiler is to optimize, from 0 to 3.
ARG OPTIMIZATION=3
RUN BARNABAS_COMPILE=${COMPILE} BARNABAS_OPTIMIZATION=${OPTIMIZATION} python -m build --no-isolation --wheel --outdir /tmp/wheel \
 && pip --python /opt/barnabas/bin/python install --no-cache-dir --no-deps /tmp/wheel/*.whl \
 && /opt/barnabas/bin/python -m compileall -q /opt/barnabas/lib


FROM ${BASE}

LABEL org.opencontainers.image.title="Barnabas" \
      org.opencontainers.image.description="A message broker in Python: Apache Kafka's wire protocol on Apache Kafka's own files." \
      org.opencontainers.image.licenses="Apache-2.0"

RUN useradd --uid 1000 --home-dir /nonexistent --shell /usr/sbin/nologin barnabas \
 && install --directory --owner barnabas --group barnabas /var/lib/barnabas

COPY --from=build /opt/barnabas /opt/barnabas
COPY docker/server.properties /etc/barnabas/server.properties

# Where testcontainers and others look for the scripts of Apache Kafka's and Confluent's images.
# They edit some of them, and write files to the working directory.
COPY --chown=barnabas:barnabas docker/confluent /etc/confluent/docker
RUN chown barnabas:barnabas /etc/confluent/docker \
 && ln -s run /etc/confluent/docker/launch \
 && ln -s /etc/confluent/docker/zookeeper-server-start /usr/local/bin/ \
 && install --directory /etc/kafka/docker \
 && ln -s /etc/confluent/docker/run /etc/kafka/docker/run
WORKDIR /etc/confluent/docker
COPY docker/entrypoint /usr/local/bin/entrypoint

ENV PATH=/opt/barnabas/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1

USER barnabas
VOLUME /var/lib/barnabas
EXPOSE 9092 9644

HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["barnabas", "healthcheck", "--config", "/etc/barnabas/server.properties"]

ENTRYPOINT ["entrypoint"]
CMD ["serve", "--config", "/etc/barnabas/server.properties"]
