"""Kernel principal component analysis."""

from maxmargin.estimators.kernel_pca.kernel_pca import KernelPCA, KernelPCAStatus

__all__ = ["KernelPCA", "KernelPCAStatus"]
