//! The `Authorization` header:
//! `AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…`.

use heatsink_dynamo::Error;

use crate::refusal;
use crate::scope::Scope;
use crate::secret::ALGORITHM;
use crate::text::read_hex;

/// What the header says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Authorization<'a> {
    pub(crate) scope: Scope<'a>,
    /// Names of headers, joined by `;`.
    pub(crate) signed_headers: &'a str,
    pub(crate) signature: [u8; 32],
}

impl<'a> Authorization<'a> {
    /// Reads the header's value. Each of the three parameters stands there once, and nothing else
    /// does.
    pub(crate) fn read(value: &'a str) -> Result<Self, Error> {
        let (algorithm, parameters) = value.split_once(' ').unwrap_or((value, ""));
        match algorithm {
            ALGORITHM => {}
            // No signature at all to DynamoDB: HTTP's own schemes, and AWS's of versions 2 and 3.
            other if !other.starts_with("AWS") => return Err(refusal::missing()),
            other => return Err(refusal::wrong_algorithm(other)),
        }
        let (mut credential, mut signed_headers, mut signature) = (None, None, None);
        for parameter in parameters.split(',') {
            let (name, value) = parameter
                .trim_matches(' ')
                .split_once('=')
                .ok_or_else(|| refusal::unknown_parameter(parameter))?;
            let place = match name {
                "Credential" => &mut credential,
                "SignedHeaders" => &mut signed_headers,
                "Signature" => &mut signature,
                other => return Err(refusal::unknown_parameter(other)),
            };
            if value.is_empty() || place.replace(value).is_some() {
                return Err(refusal::parameter(name));
            }
        }
        let credential = credential.ok_or_else(|| refusal::parameter("Credential"))?;
        let signature = signature.and_then(read_hex).ok_or_else(|| refusal::parameter("Signature"))?;
        Ok(Authorization {
            scope: Scope::read(credential)?,
            signed_headers: signed_headers.ok_or_else(|| refusal::parameter("SignedHeaders"))?,
            signature,
        })
    }
}
