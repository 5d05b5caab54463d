//! The scope of a signature: whose it is, and for which day, region and service.

use heatsink_dynamo::Error;

use crate::refusal;
use crate::secret::TERMINATOR;

/// The name that DynamoDB and DynamoDB Streams have in a scope.
pub const SERVICE: &str = "dynamodb";

/// The parts of `AKID/20260101/us-east-1/dynamodb/aws4_request`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope<'a> {
    /// The access key that the sender claims to have.
    pub access_key: &'a str,
    /// Everything behind it, which is signed.
    pub(crate) text: &'a str,
    pub(crate) date: &'a str,
    region: &'a str,
    service: &'a str,
    terminator: &'a str,
}

impl<'a> Scope<'a> {
    /// Reads the `Credential` of an `Authorization` header.
    ///
    /// # Errors
    /// `IncompleteSignatureException` for any other number of parts than five.
    pub fn read(credential: &'a str) -> Result<Self, Error> {
        let mut parts = credential.split('/');
        let mut next = || parts.next().ok_or_else(|| refusal::not_five_parts(credential));
        let (access_key, date, region, service, terminator) = (next()?, next()?, next()?, next()?, next()?);
        if parts.next().is_some() {
            return Err(refusal::not_five_parts(credential));
        }
        let text = credential.get(access_key.len() + 1..).unwrap_or_default();
        Ok(Scope { access_key, text, date, region, service, terminator })
    }

    /// Compares the scope with the `X-Amz-Date` that came with it, and with the region that the
    /// server stands for; `None` where any region is served.
    ///
    /// # Errors
    /// `InvalidSignatureException`, which says what to sign for.
    pub fn check(&self, timestamp: Option<&str>, region: Option<&str>) -> Result<(), Error> {
        if let Some(own) = region.filter(|own| *own != self.region) {
            return Err(refusal::wrong_region(self.region, own));
        }
        if self.service != SERVICE {
            return Err(refusal::wrong_service());
        }
        if self.terminator != TERMINATOR {
            return Err(refusal::wrong_terminator(self.terminator));
        }
        match timestamp {
            Some(timestamp) if timestamp.get(..8) != Some(self.date) => {
                Err(refusal::wrong_day(self.date, timestamp))
            }
            _ => Ok(()),
        }
    }
}
