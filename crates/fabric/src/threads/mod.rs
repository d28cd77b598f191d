//! A fabric whose PEs are threads of one process.
