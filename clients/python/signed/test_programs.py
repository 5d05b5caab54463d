"""Programs in other languages, which play what `test_libraries` plays: clients/java, clients/go and clients/ruby. `clients/run` installs what they need."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CLIENTS = Path(__file__).resolve().parents[2]
# DynamoDB Local brings the SDK for Java 1; Debian the logging that it needs, and the SDK for Go 2 with all that it is built from.
JARS = CLIENTS / "upstream/package/aws_dynamodb_local/DynamoDBLocal_lib"
LOGGING = Path("/usr/share/java/commons-logging.jar")
GO = Path("/usr/share/gocode")
RUBY = Path("/usr/lib/ruby/vendor_ruby/aws-sdk-v1.rb")


def run(*command, **more):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, **more)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not (shutil.which("javac") and JARS.exists() and LOGGING.exists()), reason="the SDK for Java 1 needs a JDK, npm and Debian")
def test_java(gateway):
    # It sets causes of errors in a way that newer Java has to be told to allow.
    opened = ["--add-opens", "java.base/java.lang=ALL-UNNAMED"]
    run("java", *opened, "-cp", f"{JARS}/*:{LOGGING}", CLIENTS / "java/Signed.java", gateway.endpoint, gateway.ca)


@pytest.mark.skipif(not (shutil.which("go") and (GO / "src/github.com/aws/aws-sdk-go-v2").exists()), reason="the SDK for Go 2 needs Debian")
def test_go(gateway, tmp_path):
    program = tmp_path / "signed"
    environment = {**os.environ, "GO111MODULE": "off", "GOPATH": str(GO), "GOFLAGS": "", "GOCACHE": str(CLIENTS / "upstream/go-cache")}
    run("go", "build", "-o", program, CLIENTS / "go/signed.go", env=environment)
    run(program, gateway.endpoint, gateway.ca)


@pytest.mark.skipif(not (shutil.which("ruby") and RUBY.exists()), reason="the SDK for Ruby 1 needs Debian")
def test_ruby(gateway):
    run("ruby", "-W0", CLIENTS / "ruby/signed.rb", gateway.endpoint, gateway.ca)
