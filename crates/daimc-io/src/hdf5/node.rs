//! Finds groups and datasets by name.

use std::collections::HashMap;

use hdf5_pure::{AttrValue, Dataset, Error, File, FormatError, Group, Object};

use super::array::Array;
use super::source::{Bytes, guarded};
use super::strings;
use crate::input::Random;
use crate::{Position, Result};

/// An open file.
pub(crate) struct Container {
    pub place: Position,
    pub bytes: Random,
    /// The offset of all addresses in the file.
    base: u64,
    file: File,
}

/// A group or a dataset.
pub(crate) enum Node {
    Group(Group),
    Dataset(Box<Dataset>),
}

impl Container {
    pub fn open(place: Position, bytes: Random) -> Result<Self> {
        let file = guarded(&place, || File::from_source(Bytes(bytes.clone())))?;
        let base = file.superblock();
        if base.offset_size != 8 {
            return Err(place.fault("has addresses of less than 64 bits, which are not read; save it anew"));
        }
        let base = base.base_address.get();
        Ok(Self { place, bytes, base, file })
    }

    pub fn root(&self) -> Group {
        self.file.root()
    }

    /// The member of a group with a name, if there is one.
    pub fn find(&self, group: &Group, name: &str) -> Result<Option<Node>> {
        let missing = |error: &Error| {
            matches!(
                error,
                Error::NotAGroup(_)
                    | Error::NotADataset(_)
                    | Error::MissingMessage(_)
                    | Error::Format(FormatError::PathNotFound(_))
            )
        };
        let found = guarded(&self.place, || match group.group(name) {
            Ok(found) => Ok(Some(Node::Group(found))),
            Err(Error::NotAGroup(_)) => {
                Ok(group.dataset(name).map(|found| Some(Node::Dataset(Box::new(found))))?)
            }
            Err(error) if missing(&error) => Ok(None),
            Err(error) => Err(error),
        })?;
        Ok(found)
    }

    /// The group with a name, if there is one.
    pub fn group(&self, group: &Group, name: &str) -> Result<Option<Group>> {
        Ok(match self.find(group, name)? {
            Some(Node::Group(found)) => Some(found),
            _ => None,
        })
    }

    /// The array of this name.
    pub fn array(&self, group: &Group, name: &str) -> Result<Array> {
        match self.find(group, name)? {
            Some(Node::Dataset(dataset)) => Array::open(&self.place, &dataset, &self.bytes),
            _ => Err(self
                .place
                .fault(format!("lacks {name}, without which it cannot be understood; save it anew"))),
        }
    }

    /// The texts of this name.
    pub fn texts(&self, group: &Group, name: &str) -> Result<Vec<String>> {
        self.strings(&self.array(group, name)?)
    }

    /// The texts of an array.
    pub fn strings(&self, array: &Array) -> Result<Vec<String>> {
        strings::read(array, &self.bytes, self.base)
    }

    /// The names in a group, of groups and of datasets.
    pub fn names(&self, group: &Group) -> Result<Vec<String>> {
        let mut names = guarded(&self.place, || group.groups())?;
        names.extend(guarded(&self.place, || group.datasets())?);
        names.sort();
        Ok(names)
    }

    /// The objects that the elements of a dataset refer to.
    pub fn referred(&self, dataset: &Dataset) -> Result<Vec<Node>> {
        let objects = guarded(&self.place, || dataset.dereference())?;
        let nodes = objects.into_iter().filter_map(|object| match object {
            Object::Group(group) => Some(Node::Group(group)),
            Object::Dataset(dataset) => Some(Node::Dataset(dataset)),
            _ => None,
        });
        Ok(nodes.collect())
    }

    pub fn attributes(&self, node: &Node) -> Result<HashMap<String, AttrValue>> {
        guarded(&self.place, || match node {
            Node::Group(group) => group.attrs(),
            Node::Dataset(dataset) => dataset.attrs(),
        })
    }

    /// An attribute that is a text.
    pub fn text_attribute(&self, node: &Node, name: &str) -> Result<Option<String>> {
        Ok(self.attributes(node)?.get(name).and_then(AttrValue::as_str).map(String::from))
    }
}
