# docker build -t moorage:VERSION .
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip wheel --no-cache-dir --wheel-dir /wheels .

FROM python:3.12-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-index --find-links /wheels moorage && rm -r /wheels
# An unprivileged user.
USER 65532:65532
EXPOSE 10259
ENTRYPOINT ["moorage"]
CMD ["run"]
