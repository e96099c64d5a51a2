# moto behind the guard of the tests, obeying the variables of VersityGW that docker-compose.yml sets.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
ARG PIP_INDEX_URL
RUN apt-get -o APT::Sandbox::User=root update \
 && DEBIAN_FRONTEND=noninteractive apt-get -o APT::Sandbox::User=root install -y --no-install-recommends wget \
 && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/objects && /opt/objects/bin/pip install --no-cache-dir --disable-pip-version-check 'moto[s3]>=5.1' 'flask>=3.0' 'flask-cors>=5.0'
COPY s3_stand_in.py s3_guard.py s3_process.py /opt/objects/
ENTRYPOINT ["/opt/objects/bin/python", "/opt/objects/s3_stand_in.py"]
