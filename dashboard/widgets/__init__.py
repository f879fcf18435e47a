"""Parts that pages draw: tables, lists, bars, links and the grid."""
