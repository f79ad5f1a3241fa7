//! A file of CAs that are trusted instead of the public ones.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::Path;

/// Reads a PEM file; never one without a certificate, with which nothing would connect.
///
/// # Errors
/// What is wrong with the file, as the end of a sentence about the setting that names it.
pub(crate) fn read(file: &Path) -> Result<Vec<u8>, String> {
    let wrong = |reason: String| format!("{} {reason}", file.display());
    let pem = std::fs::read(file).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| wrong(format!("is no PEM file: {error}")))?;
        roots.add(certificate).map_err(|error| wrong(format!("holds a certificate that cannot be used: {error}")))?;
    }
    if roots.is_empty() { Err(wrong("holds no certificate".to_owned())) } else { Ok(pem) }
}
