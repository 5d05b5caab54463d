"""Keeps credentials out of everything that the story prints and writes: stores quote signed headers in their errors."""

import os
import re

import boto3

NAMES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN")
# What looks like one, whoever's it is.
FORMS = re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b|(?<=x-amz-security-token:)\S+|(?<=Signature=)[0-9a-f]+")


class Blot:
    def __init__(self, secrets=()):
        # Shorter ones are made up, as `local` is, and would blot words.
        self.secrets = sorted((secret for secret in set(secrets) if secret and len(secret) >= 12), key=len, reverse=True)

    @classmethod
    def of(cls, target):
        """Knows the credentials that SDKs would use there. Those of a machine's role are asked for only where they are used."""
        found = [os.environ.get(name) for name in NAMES]
        credentials = None if target.is_loopback else boto3.Session().get_credentials()
        if credentials:
            frozen = credentials.get_frozen_credentials()
            found += [frozen.access_key, frozen.secret_key, frozen.token]
        return cls(found)

    def __call__(self, text):
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return FORMS.sub("***", text)
