//! The hash of a rule for a table that was sharded by hand.

use heatsink_layout::{Digest, Hash};
use toml::Spanned;

use super::RulesError;
use super::fault::Fault;
use super::file::{HashName, HexDigits};

/// The hash of that name, with so many digits.
pub(super) fn of(
    name: HashName,
    digits: Option<Spanned<HexDigits>>,
    fault: Fault<'_>,
) -> Result<Hash, RulesError> {
    let digest = match name {
        HashName::Md5 => Some(Digest::Md5),
        HashName::Sha1 => Some(Digest::Sha1),
        HashName::Sha256 => Some(Digest::Sha256),
        _ => None,
    };
    if let Some(digits) = digits {
        let Some(digest) = digest else {
            let problem = "has no meaning but with hash = \"md5\", \"sha1\" or \"sha256\"; remove it";
            return Err(fault(digits.span(), problem.to_owned()));
        };
        let (most, span) = (digest.digits(), digits.span());
        let digits = digits.into_inner().0;
        if digits == 0 || digits < -most || digits > most {
            let problem = format!(
                "expected from 1 to {most} digits, or from -1 to -{most} for those at the end, found {digits}"
            );
            return Err(fault(span, problem));
        }
        if digits.abs() != most {
            return Ok(Hash::Slice { digest, digits });
        }
    }
    Ok(match name {
        HashName::Jump => Hash::JumpXxh3,
        HashName::Md5 => Hash::Md5,
        HashName::Sha1 => Hash::Sha1,
        HashName::Sha256 => Hash::Sha256,
        HashName::Crc32 => Hash::Crc32,
        HashName::Fnv1a32 => Hash::Fnv1a32,
        HashName::Fnv1a64 => Hash::Fnv1a64,
        HashName::Java => Hash::Java,
        HashName::JavaAbs => Hash::JavaAbs,
        HashName::JavaMask => Hash::JavaMask,
        HashName::JavaObjects => Hash::JavaObjects,
        HashName::Modulo => Hash::Modulo,
        HashName::Random => Hash::Random,
    })
}
