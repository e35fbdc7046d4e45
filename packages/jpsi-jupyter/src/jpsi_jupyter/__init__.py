"""Jupyter's kernel provisioner `jpsi`: runs kernels as jobs of any executor of jpsi.

`kernel_launcher` runs on the node and starts the kernel; `connection` leads to it, through ssh if need be,
keeps it alive and sends it signals.
"""

from .provisioner import JpsiProvisioner

__all__ = ["JpsiProvisioner"]
