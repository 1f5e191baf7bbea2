//! E-mails, by SMTP: protected from the first byte, by `STARTTLS`, or not at all where that is said.

use std::time::Duration;

use data_encoding::HEXLOWER;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use servo_engine::definitions::{Destination, SmtpSecurity};
use servo_engine::notification::{Delivery, SendFailure};
use sha2::{Digest, Sha256};

use crate::secrets::Secrets;
use crate::{Senders, addresses, again, never};

const ANSWER: Duration = Duration::from_secs(20);

/// Sends a notification by e-mail.
pub(crate) async fn send(
    senders: &Senders,
    delivery: &Delivery,
    to: &Destination,
    private: bool,
    secrets: &mut Secrets,
) -> Result<(), SendFailure> {
    let Destination::Email { host, port, security, username, password, from, to } = to else {
        return Err(never("this is no e-mail"));
    };
    let message = message(senders, delivery, from, to)?;
    let port = port.unwrap_or(match security {
        SmtpSecurity::Starttls => 587,
        SmtpSecurity::Tls => 465,
        SmtpSecurity::None => 25,
    });
    let found = addresses::resolve(host, port, private).await?;
    let Some(address) = found.first() else { return Err(again(format!("{host} has no address"))) };
    let parameters = || {
        TlsParameters::new(host.clone())
            .map_err(|error| never(format!("no protected connection to {host} can be made: {error}")))
    };
    let tls = match security {
        SmtpSecurity::Starttls => Tls::Required(parameters()?),
        SmtpSecurity::Tls => Tls::Wrapper(parameters()?),
        SmtpSecurity::None => Tls::None,
    };
    // The address that was looked at, and no other.
    let transport = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(address.ip().to_string());
    let mut transport = transport.port(port).tls(tls).timeout(Some(ANSWER));
    if let (Some(username), Some(password)) = (username, password) {
        transport = transport.credentials(Credentials::new(username.clone(), secrets.get(password)?));
    }
    let sent = tokio::time::timeout(ANSWER * 2, transport.build().send(message)).await;
    match sent {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(told(host, &error)),
        Err(_) => Err(again(format!("{host} did not take the e-mail in time"))),
    }
}

fn message(
    senders: &Senders,
    delivery: &Delivery,
    from: &str,
    to: &[String],
) -> Result<Message, SendFailure> {
    let address = |text: &str| {
        text.parse::<Mailbox>().map_err(|error| never(format!("{text:?} is no address: {error}")))
    };
    let words = senders.words(delivery);
    // The same for every try, so that readers show it once.
    let id: String = HEXLOWER.encode(&Sha256::digest(delivery.notification_id.as_bytes())[..16]);
    let generated = HeaderName::new_from_ascii_str("Auto-Submitted");
    let mut message = Message::builder()
        .from(address(from)?)
        .subject(words.title)
        .message_id(Some(format!("<{id}@servo>")))
        .raw_header(HeaderValue::new(generated, "auto-generated".to_owned()))
        .header(ContentType::TEXT_PLAIN);
    for reader in to {
        message = message.to(address(reader)?);
    }
    message.body(words.body).map_err(|error| never(format!("the e-mail cannot be written: {error}")))
}

fn told(host: &str, error: &SmtpError) -> SendFailure {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(found) = cause {
        text = found.to_string();
        cause = found.source();
    }
    let message = format!("{host} did not take the e-mail: {text}");
    SendFailure { message, retry: !error.is_permanent() }
}
