#!/bin/sh
# Makes the certificates of the tests anew, for a hundred years: an authority, a server certificate of
# it for "localhost", and an authority that signed nothing. They guard nothing: the keys are public.
set -eu
cd "$(dirname "$0")"
days=36500
authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days $days \
    -subj "/CN=$2" -keyout "$1.key" -out "$1.crt" \
    -addext basicConstraints=critical,CA:true -addext keyUsage=critical,keyCertSign
}
authority authority "plants test authority"
authority stranger "plants test stranger"
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost -keyout server.key -out server.csr
printf 'subjectAltName=DNS:localhost\nbasicConstraints=CA:false\n' >server.ext
openssl x509 -req -in server.csr -CA authority.crt -CAkey authority.key -CAcreateserial -days $days -extfile server.ext -out server.crt
rm -f ./*.csr ./*.ext ./*.srl authority.key stranger.key
