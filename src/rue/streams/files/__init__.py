"""Files as bytes: opened, decompressed, and cut into pieces at line ends."""
