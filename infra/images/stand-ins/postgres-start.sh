#!/bin/bash
# What the postgres image's entrypoint does with POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB and /docker-entrypoint-initdb.d/*.sql.
set -euo pipefail
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --username="$POSTGRES_USER" --pwfile=<(printf '%s' "$POSTGRES_PASSWORD") --auth-host=scram-sha-256 --auth-local=trust -E UTF8 >/dev/null
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
  pg_ctl -D "$PGDATA" -o "-c listen_addresses='' -c unix_socket_directories=/tmp" -w start >/dev/null
  run() { psql -h /tmp -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" "$@"; }
  [ "$POSTGRES_DB" = postgres ] || run --dbname postgres -c "CREATE DATABASE \"$POSTGRES_DB\""
  for file in /docker-entrypoint-initdb.d/*.sql; do
    [ ! -e "$file" ] || run --dbname "$POSTGRES_DB" -f "$file"
  done
  pg_ctl -D "$PGDATA" -m fast -w stop >/dev/null
fi
exec postgres -D "$PGDATA" -c listen_addresses='*' -c unix_socket_directories=/tmp
