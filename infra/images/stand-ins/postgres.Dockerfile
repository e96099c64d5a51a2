# Debian's Postgres, started as the postgres image starts its own.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
RUN apt-get -o APT::Sandbox::User=root update \
 && DEBIAN_FRONTEND=noninteractive apt-get -o APT::Sandbox::User=root install -y --no-install-recommends postgresql-15 \
 && rm -rf /var/lib/apt/lists/* /var/lib/postgresql/15 \
 && install -d -o postgres -g postgres -m 0700 /var/lib/postgresql/data
ENV PATH=/usr/lib/postgresql/15/bin:$PATH PGDATA=/var/lib/postgresql/data
COPY postgres-start.sh /usr/local/bin/
USER postgres
ENTRYPOINT ["bash", "/usr/local/bin/postgres-start.sh"]
STOPSIGNAL SIGINT
