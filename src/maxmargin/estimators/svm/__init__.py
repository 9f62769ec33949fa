"""Support vector machines with any kernel: SVC, NuSVC, SVR, NuSVR, QuantileSVR, OneClassSVM."""
