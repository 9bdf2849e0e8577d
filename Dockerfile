# What is installed is named by hash; nothing of an installation is in the image.
#
#   docker build --tag gatehouse .
#   docker build --target outpost --tag gatehouse-outpost .
FROM python:3.11-slim AS build

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /build

COPY requirements.lock requirements-build.lock ./

# The builder, hatchling, and Node: by hash as well, and not in the image.
RUN python -m venv /tools \
    && /tools/bin/pip install --no-deps --require-hashes -r requirements-build.lock

RUN python -m venv /app \
    && /app/bin/pip install --no-deps --require-hashes -r requirements.lock

COPY pyproject.toml README.md LICENSE ./
COPY console console
COPY tools tools
COPY src src
# The console, by Node of the lock above. npm checks packages by the hashes of its own lock, and runs no scripts.
RUN /tools/bin/python tools/console.py build
RUN /tools/bin/pip wheel --no-deps --no-build-isolation --wheel-dir dist . \
    && /app/bin/pip install --no-deps dist/*.whl


FROM python:3.11-slim AS runtime

ARG BUILD_DATE=""
ARG GIT_COMMIT=""
ENV PATH=/app/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    GATEHOUSE_HOME=/var/lib/gatehouse \
    GATEHOUSE_BUILD_DATE=$BUILD_DATE \
    GATEHOUSE_GIT_COMMIT=$GIT_COMMIT

RUN useradd --system --uid 10001 --home-dir /var/lib/gatehouse --create-home gatehouse \
    && chmod 0700 /var/lib/gatehouse
COPY --from=build /app /app

USER gatehouse
WORKDIR /var/lib/gatehouse
# The journal: records that are not in the database yet.
VOLUME /var/lib/gatehouse

ENTRYPOINT ["gatehouse"]


# At the customer's: the proxy, and its administration.
FROM runtime AS outpost

EXPOSE 8300 8301
# For the port without TLS.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8300/api/health/live', timeout=2)"]

CMD ["serve", "outpost", "--host", "0.0.0.0"]


FROM runtime

EXPOSE 8000
# For the port without TLS.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/api/health/live', timeout=2)"]

CMD ["serve", "platform", "--host", "0.0.0.0"]
