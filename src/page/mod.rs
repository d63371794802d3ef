//! Pages: the data and the file of `report`, the answers to the explorer's page, and the servers on
//! loopback that give a page to a browser.

pub mod explore_api;
pub mod net;
pub mod report;
