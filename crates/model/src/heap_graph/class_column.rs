//! The class of each object, in 16 bits if there are few enough classes, which is usual.

use super::ids::{ClassIndex, ObjectIndex};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassColumn(Column);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Column {
    Narrow(Vec<u16>),
    Wide(Vec<ClassIndex>),
}

impl ClassColumn {
    pub fn len(&self) -> usize {
        match &self.0 {
            Column::Narrow(classes) => classes.len(),
            Column::Wide(classes) => classes.len(),
        }
    }

    #[inline]
    pub fn get(&self, object: ObjectIndex) -> ClassIndex {
        match &self.0 {
            Column::Narrow(classes) => ClassIndex(classes[object.at()].into()),
            Column::Wide(classes) => classes[object.at()],
        }
    }
}

impl From<Vec<ClassIndex>> for ClassColumn {
    fn from(classes: Vec<ClassIndex>) -> ClassColumn {
        let largest = classes.iter().map(|class| class.0).max();
        ClassColumn(match largest.unwrap_or(0) <= u16::MAX.into() {
            true => Column::Narrow(classes.iter().map(|class| class.0 as u16).collect()),
            false => Column::Wide(classes),
        })
    }
}

impl FromIterator<ClassIndex> for ClassColumn {
    fn from_iter<T: IntoIterator<Item = ClassIndex>>(classes: T) -> ClassColumn {
        ClassColumn::from(Vec::from_iter(classes))
    }
}
