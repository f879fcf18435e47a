"""Memory in the torch profiler's timelines, Kineto traces and printed allocator statistics."""
