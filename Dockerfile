# The page in a container. On a processor:
#   docker build -t seedgrid .
#   docker run --rm -p 127.0.0.1:7860:7860 -v seedgrid:/data seedgrid
# On an NVIDIA GPU (never run on a GPU so far):
#   docker build -t seedgrid:cuda --build-arg TORCH=cuda .
#   docker run --rm --gpus all -p 127.0.0.1:7860:7860 -v seedgrid:/data seedgrid:cuda
# For strangers: -e SEEDGRID_PUBLIC=1; every setting is a variable of docs/operations.md.
ARG PYTHON=3.12
FROM python:${PYTHON}-slim-bookworm

# "cpu" takes torch without the libraries of a GPU, "cuda" takes what the package index has.
ARG TORCH=cpu
# More packages, for a cluster "ray>=2.60,<3" (compose.yaml).
ARG PACKAGES=

ENV PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    SEEDGRID_HOST=0.0.0.0 \
    SEEDGRID_PORT=7860 \
    SEEDGRID_LIBRARY=/data/library \
    SEEDGRID_MODELS=/data/models \
    SEEDGRID_CACHE=/data/cache \
    HF_HOME=/data/huggingface

RUN useradd --uid 1000 --create-home seedgrid \
    && mkdir -p /data/library /data/models /data/cache /data/huggingface \
    && chown -R 1000:1000 /data

WORKDIR /opt/seedgrid

# What changes seldom first: a change of the code makes no new layer of the libraries.
# Every file but torch's, which each index has in a form of its own, is known by its hash.
COPY requirements.lock ./
RUN if [ "$TORCH" = cpu ]; then index=--index-url=https://download.pytorch.org/whl/cpu; fi \
    && pip install $index "torch>=2.8,<2.14" \
    && pip install --no-deps --require-hashes -r requirements.lock \
    && if [ -n "$PACKAGES" ]; then pip install $PACKAGES; fi

COPY pyproject.toml README.md LICENSE CHANGELOG.md app.py ./
COPY assets ./assets
COPY seedgrid ./seedgrid
RUN pip install --no-deps .

USER 1000
WORKDIR /home/seedgrid
VOLUME /data
EXPOSE 7860
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as web; web.urlopen('http://127.0.0.1:7860/healthz', timeout=5)"]
CMD ["seedgrid", "ui"]
