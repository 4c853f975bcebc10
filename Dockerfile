# Builds vllm on Debian 12 and leaves a small image that runs as an unprivileged user on a read-only root.
#   docker build -t vllm.cpp .
#   docker run --rm --read-only -p 8000:8000 -v /path/to/models:/models:ro vllm.cpp \
#     serve /models/model.gguf --host 0.0.0.0
FROM debian:12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
      g++ mold cmake ninja-build pkg-config libboost1.81-dev libboost-url1.81-dev nlohmann-json3-dev libspdlog-dev \
      libfmt-dev prometheus-cpp-dev libpcre2-dev libutf8proc-dev libsimdjson-dev libyaml-cpp-dev libssl-dev \
    && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN cmake -S /src -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DVLLM_TESTS=OFF && ninja -C /build vllm \
    && strip /build/vllm

FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends \
      libboost-url1.81.0 libspdlog1.10 libfmt9 libprometheus-cpp-core1.0 libpcre2-8-0 libutf8proc2 libsimdjson14 \
      libyaml-cpp0.7 libssl3 \
    && rm -rf /var/lib/apt/lists/* && useradd --system --create-home vllm
COPY --from=build /build/vllm /usr/local/bin/vllm
USER vllm
EXPOSE 8000
ENTRYPOINT ["vllm"]
CMD ["serve", "--help"]
