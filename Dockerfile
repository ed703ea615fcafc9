# deployer alone, without a shell, as nobody in particular:
#   docker build --build-arg VERSION=$(git describe --tags --always) --build-arg COMMIT=$(git rev-parse HEAD) -t deployer .
#   docker run --rm -v $HOME/.kube/config:/kubeconfig:ro -v $PWD:/work deployer list -A
FROM --platform=$BUILDPLATFORM docker.io/library/golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY internal/govalidator/go.mod internal/govalidator/
RUN go mod download
COPY . .
ARG VERSION=dev
ARG COMMIT=
ARG TARGETOS
ARG TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -X main.buildVersion=$VERSION -X main.buildCommit=$COMMIT" -o /out/bin/deployer ./cmd/deployer && \
    mkdir -p /out/tmp /out/home /out/work /out/etc/ssl/certs && \
    cp /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/ && \
    echo 'deployer:x:65532:65532::/home:/bin/deployer' > /out/etc/passwd && \
    chmod 1777 /out/tmp && chown 65532:65532 /out/home /out/work

FROM scratch
COPY --from=build /out /
ENV HOME=/home KUBECONFIG=/kubeconfig PATH=/bin
WORKDIR /work
USER 65532:65532
ENTRYPOINT ["/bin/deployer"]
