"""Reading Nsight Systems exports: one layer, which knows tables and events and no model."""
