# podtrail-kube-scheduler: one static binary, under the name that kube-scheduler's manifests call, and the licence notices
# of all that is linked into it. No shell, no base. instrumentation/go/image.sh makes the folder that it is built in.
FROM scratch
ARG VERSION
LABEL org.opencontainers.image.title="podtrail-kube-scheduler" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY kube-scheduler /usr/local/bin/kube-scheduler
COPY NOTICES.txt /licenses/NOTICES.txt
ENV PATH=/usr/local/bin
# A number, so that Kubernetes can check runAsNonRoot. Nothing is written.
USER 10001:10001
EXPOSE 10259
ENTRYPOINT ["/usr/local/bin/kube-scheduler"]
