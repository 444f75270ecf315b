//! UDP in batches, with segmentation and joining left to the kernel.
