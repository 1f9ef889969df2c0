"""Building wheels anew: sources, compilers, the build, its proof, and the wheelhouse."""
