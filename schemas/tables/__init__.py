"""The tables of the store, one module per subject: name, layer, grain, primary key and columns."""
