use crate::results::Results; pub(crate) fn measure(_r: &mut Results) -> anyhow::Result<()> { Ok(()) }
