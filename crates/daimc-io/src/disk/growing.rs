//! Values that are appended in their final order.

use super::options::Keep;
use super::spool::Spool;
use crate::real::Real;
use crate::{Error, Result};

/// Values in memory up to the limit, then in a spool file.
pub(crate) struct Growing<'a, T> {
    keep: Keep<'a>,
    values: Vec<T>,
    spool: Option<Spool>,
}

/// All values.
pub(crate) enum Grown<T> {
    Memory(Vec<T>),
    Disk(Spool),
}

impl<'a, T: Real> Growing<'a, T> {
    pub fn new(keep: Keep<'a>) -> Result<Self> {
        Ok(Self { keep, values: Vec::new(), spool: keep.disk().map(Spool::new).transpose()? })
    }

    /// Appends values. `reserve` is called to reserve memory, if they stay there.
    pub fn append(&mut self, more: &[T], reserve: impl FnOnce(&mut Vec<T>) -> Result<()>) -> Result<()> {
        if self.spool.is_none() {
            let bytes = size_of_val(&*self.values) + size_of_val(more);
            let reserved = match self.keep {
                Keep::Within(_, most) if bytes as u64 > most => None,
                Keep::Within(..) => match reserve(&mut self.values) {
                    Err(Error::Memory { .. }) => None,
                    other => Some(other),
                },
                _ => Some(reserve(&mut self.values)),
            };
            match (reserved, self.keep) {
                (None, Keep::Within(disk, _)) => {
                    let spool = self.spool.insert(Spool::new(disk)?);
                    spool.write(&std::mem::take(&mut self.values))?;
                }
                (reserved, _) => {
                    reserved.transpose()?;
                    self.values.extend_from_slice(more);
                    return Ok(());
                }
            }
        }
        self.spool.as_mut().map_or(Ok(()), |spool| spool.write(more))
    }

    pub fn finish(mut self) -> Grown<T> {
        self.values.shrink_to_fit();
        self.spool.map_or(Grown::Memory(self.values), Grown::Disk)
    }
}
