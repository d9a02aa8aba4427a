"""The catalogue as Verda's API showed it in February 2026: 55 instance types, four locations, images per type.

Prices are US dollars per hour for the whole machine, as the strings the API sends. Memory is the machine's total in the
API's gigabytes, GPU memory the sum over all GPUs. B300 really is listed with 525 GB for two cards of 262.
"""

from typing import NamedTuple


class TypeRow(NamedTuple):
    """One instance type; `family` is the stock of hardware it is cut from."""

    name: str
    family: str
    cpus: int
    memory_gb: int
    gpus: int
    gpu_memory_gb: int
    price: str
    spot_price: str
    p2p: str | None
    fixed_storage_gb: int | None = None


class Family(NamedTuple):
    """What all types cut from the same hardware share."""

    label: str
    model: str
    manufacturer: str
    supported_os: tuple[str, ...]
    best_for: tuple[str, ...] = ()
    deploy_warning: str | None = None
    display_name: str | None = None


_KUBERNETES = "24.04.kubernetes1.31.1.cuda12.9.qcow2"
_U22 = "ubuntu-22.04"
_U24 = "ubuntu-24.04"
DEFAULT_IMAGE = "ubuntu-24.04-cuda-12.8-open-docker"


def _with_docker(*names: str) -> tuple[str, ...]:
    return tuple(variant for name in names for variant in (name, f"{name}-docker"))


_CUDA_12 = _with_docker(*(f"{_U22}-cuda-12.{minor}" for minor in (0, 1, 3, 4)))
_OPEN_128 = _with_docker(f"{_U22}-cuda-12.8-open", f"{_U24}-cuda-12.8-open")
_OPEN_130 = _with_docker(f"{_U22}-cuda-13.0-open", f"{_U24}-cuda-13.0-open")
_U24_126 = (_U24, *_with_docker(f"{_U24}-cuda-12.6"))
_CLUSTER_124 = f"{_U22}-cuda-12.4-cluster"
_CLUSTER_128 = f"{_U22}-cuda-12.8-cluster"

_PRO6000_OS = tuple(sorted((_KUBERNETES, "jupyter.cuda.12.8", _U22, _U24, *_OPEN_128, *_OPEN_130)))
_BLACKWELL_OS = tuple(sorted((*_PRO6000_OS, _CLUSTER_128)))
_V100_OS = tuple(sorted(("jupyter", _U22, *_CUDA_12, _CLUSTER_124, *_U24_126)))
_A6000_OS = tuple(sorted((*_V100_OS, _CLUSTER_128, "jupyter.cuda.12.8", _KUBERNETES)))
_ADA_OS = tuple(sorted((*_V100_OS, _CLUSTER_128, "jupyter.cuda.12.8", *_OPEN_128)))
_H100_OS = tuple(sorted((*_ADA_OS, _KUBERNETES)))
_H200_OS = tuple(sorted((*_H100_OS, *_with_docker(f"{_U24}-cuda-13.0-open"))))
_A100_OS = tuple(
    sorted(
        (
            *_H100_OS,
            "ubuntu-20.04",
            "ubuntu-20.04-cuda-11.0",
            "ubuntu-20.04-cuda-11.2",
            *_with_docker(*(f"ubuntu-20.04-cuda-{version}" for version in ("11.1", "11.4", "11.7", "12.4"))),
        )
    )
)

_HUGE = ("Gargantuan ML models", "Multi-GPU training", "FP64 HPC", "NVLINK")
_GIANT = ("Giant ML models", "Multi-GPU training", "FP64 calculations", "NVLINK")
_SMALL = ("Small ML models", "Multi-GPU training", "FP64 calculations", "NVLINK")
_LARGE = ("Large ML models", "32-16-8 bit operations", "Single-GPU training")
_FP32 = ("Large ML models", "FP32 calculations", "Single-GPU training")
_SERVICES = ("Running services", "API server", "Data transfers")
_ADA_WARNING = "RTX6000 Ada: Make sure your VM is running Nvidia driver 525.105.17 or newer"
_H100_WARNING = "H100: Use Nvidia driver 535 or higher for best performance"
_B200_WARNING = 'Blackwell: Use "Ubuntu 24.04 + CUDA 12.8 Open" image type or install NVIDIA open drivers manually'

FAMILIES: dict[str, Family] = {
    "GB300": Family("GB300 SXM6 288GB", "GB300", "NVIDIA", ()),
    "B300": Family("B300 SXM6 262GB", "B300", "NVIDIA", _BLACKWELL_OS),
    "B200": Family("B200 SXM6 180GB", "B200", "NVIDIA", _BLACKWELL_OS, _HUGE, _B200_WARNING),
    "H200": Family("H200 SXM5 141GB", "H200", "NVIDIA", _H200_OS, _HUGE),
    "H100": Family("H100 SXM5 80GB", "H100", "NVIDIA", _H100_OS, _HUGE, _H100_WARNING),
    "A100": Family("A100 SXM4 80GB", "A100 80GB", "NVIDIA", _A100_OS, _GIANT),
    "A100-40": Family("A100 SXM4 40GB", "A100 40GB", "NVIDIA", _A100_OS, _GIANT),
    "V100": Family("Tesla V100 16GB", "Tesla V100", "NVIDIA", _V100_OS, _SMALL),
    "RTXPRO6000": Family("RTX PRO 6000 96GB", "RTX PRO 6000", "NVIDIA", _PRO6000_OS),
    "L40S": Family("L40S 48GB", "L40S", "NVIDIA", _ADA_OS, _LARGE),
    "RTX6000ADA": Family("RTX 6000 Ada 48GB", "RTX 6000 Ada", "NVIDIA", _ADA_OS, _LARGE, _ADA_WARNING),
    "A6000": Family("RTX A6000 48GB", "RTX A6000", "NVIDIA", _A6000_OS, _FP32),
    "CPU": Family("AMD EPYC", "CPU Node", "AMD", _ADA_OS, _SERVICES, None, "Rome/Milan"),
}

_NVLINK = "NVLink up to 50GB/s"

TYPES: tuple[TypeRow, ...] = (
    TypeRow("1GB300.32V", "GB300", 32, 225, 1, 288, "5.450", "1.908", "1.8 TB/s"),
    TypeRow("2GB300.64V", "GB300", 64, 450, 2, 576, "10.90", "3.815", "1.8 TB/s"),
    TypeRow("4GB300.128V", "GB300", 128, 900, 4, 1152, "21.80", "7.630", "1.8 TB/s"),
    TypeRow("1B300.30V", "B300", 30, 275, 1, 262, "4.950", "1.733", "1.8 TB/s"),
    TypeRow("2B300.60V", "B300", 60, 550, 2, 525, "9.900", "3.465", "1.8 TB/s"),
    TypeRow("4B300.120V", "B300", 120, 1100, 4, 1050, "19.80", "6.930", "1.8 TB/s"),
    TypeRow("8B300.240V", "B300", 240, 2200, 8, 2100, "39.60", "13.86", "1.8 TB/s"),
    TypeRow("1B200.30V", "B200", 30, 184, 1, 180, "3.990", "1.397", None),
    TypeRow("2B200.60V", "B200", 60, 368, 2, 360, "7.980", "2.793", "900 GB/s"),
    TypeRow("4B200.120V", "B200", 120, 736, 4, 720, "15.96", "5.586", "1.8 TB/s"),
    TypeRow("8B200.240V", "B200", 240, 1472, 8, 1440, "31.92", "11.17", "1.8 TB/s"),
    TypeRow("1H200.141S.44V", "H200", 44, 182, 1, 141, "2.990", "1.047", None),
    TypeRow("2H200.141S.88V", "H200", 88, 370, 2, 282, "5.980", "2.093", "900 GB/s"),
    TypeRow("4H200.141S.176V", "H200", 176, 740, 4, 564, "11.96", "4.186", "900 GB/s"),
    TypeRow("8H200.141S.176V", "H200", 176, 1450, 8, 1128, "23.92", "8.372", "900 GB/s"),
    TypeRow("1H100.80S.30V", "H100", 30, 120, 1, 80, "2.290", "0.8015", None),
    TypeRow("1H100.80S.32V", "H100", 32, 185, 1, 80, "2.290", "0.8015", None),
    TypeRow("2H100.80S.80V", "H100", 80, 370, 2, 160, "4.580", "1.603", "900 GB/s"),
    TypeRow("4H100.80S.176V", "H100", 176, 740, 4, 320, "9.160", "3.206", "900 GB/s"),
    TypeRow("8H100.80S.176V", "H100", 176, 1480, 8, 640, "18.32", "6.412", "900 GB/s"),
    TypeRow("1A100.22V", "A100", 22, 120, 1, 80, "1.290", "0.4515", None),
    TypeRow("2A100.44V", "A100", 44, 240, 2, 160, "2.580", "0.9030", "100 GB/s"),
    TypeRow("4A100.88V", "A100", 88, 480, 4, 320, "5.160", "1.806", "300 GB/s"),
    TypeRow("8A100.176V", "A100", 176, 960, 8, 640, "10.32", "3.612", "600 GB/s"),
    TypeRow("1A100.40S.22V", "A100-40", 22, 120, 1, 40, "0.7211", "0.2524", None),
    TypeRow("8A100.40S.176V", "A100-40", 176, 960, 8, 320, "5.769", "2.019", "600 GB/s"),
    TypeRow("1V100.6V", "V100", 6, 23, 1, 16, "0.1381", "0.04830", None, 225),
    TypeRow("2V100.10V", "V100", 10, 45, 2, 32, "0.2762", "0.09660", _NVLINK, 450),
    TypeRow("4V100.20V", "V100", 20, 90, 4, 64, "0.5524", "0.1932", _NVLINK, 890),
    TypeRow("8V100.48V", "V100", 48, 180, 8, 128, "1.105", "0.3864", _NVLINK, 1800),
    TypeRow("1RTXPRO6000.30V", "RTXPRO6000", 30, 90, 1, 96, "1.390", "0.4865", None),
    TypeRow("2RTXPRO6000.60V", "RTXPRO6000", 60, 180, 2, 192, "2.780", "0.9730", "1597 GB/s"),
    TypeRow("4RTXPRO6000.120V", "RTXPRO6000", 120, 360, 4, 384, "5.560", "1.946", "1597 GB/s"),
    TypeRow("8RTXPRO6000.240V", "RTXPRO6000", 240, 720, 8, 768, "11.12", "3.892", "1597 GB/s"),
    TypeRow("1L40S.20V", "L40S", 20, 60, 1, 48, "0.9143", "0.3200", None),
    TypeRow("2L40S.40V", "L40S", 40, 120, 2, 96, "1.829", "0.6400", "50GB/s"),
    TypeRow("4L40S.80V", "L40S", 80, 240, 4, 192, "3.657", "1.280", "50GB/s"),
    TypeRow("8L40S.160V", "L40S", 160, 480, 8, 384, "7.314", "2.560", "50GB/s"),
    TypeRow("1RTX6000ADA.10V", "RTX6000ADA", 10, 60, 1, 48, "0.8262", "0.2892", None),
    TypeRow("2RTX6000ADA.20V", "RTX6000ADA", 20, 120, 2, 96, "1.652", "0.5784", "50GB/s"),
    TypeRow("4RTX6000ADA.40V", "RTX6000ADA", 40, 240, 4, 192, "3.305", "1.157", "50GB/s"),
    TypeRow("8RTX6000ADA.80V", "RTX6000ADA", 80, 480, 8, 384, "6.610", "2.314", "50GB/s"),
    TypeRow("1A6000.10V", "A6000", 10, 60, 1, 48, "0.4900", "0.1715", None),
    TypeRow("2A6000.20V", "A6000", 20, 120, 2, 96, "0.9800", "0.3430", "50GB/s"),
    TypeRow("4A6000.40V", "A6000", 40, 240, 4, 192, "1.960", "0.6860", "50GB/s"),
    TypeRow("8A6000.80V", "A6000", 80, 480, 8, 384, "3.920", "1.372", "50GB/s"),
    TypeRow("CPU.4V.16G", "CPU", 4, 16, 0, 0, "0.02790", "0.009800", None),
    TypeRow("CPU.8V.32G", "CPU", 8, 32, 0, 0, "0.05580", "0.01960", None),
    TypeRow("CPU.16V.64G", "CPU", 16, 64, 0, 0, "0.1116", "0.03920", None),
    TypeRow("CPU.32V.128G", "CPU", 32, 128, 0, 0, "0.2232", "0.07840", None),
    TypeRow("CPU.64V.256G", "CPU", 64, 256, 0, 0, "0.4464", "0.1568", None),
    TypeRow("CPU.96V.384G", "CPU", 96, 384, 0, 0, "0.6696", "0.2352", None),
    TypeRow("CPU.120V.480G", "CPU", 120, 480, 0, 0, "0.8370", "0.2940", None),
    TypeRow("CPU.180V.720G", "CPU", 180, 720, 0, 0, "1.256", "0.4410", ""),
    TypeRow("CPU.360V.1440G", "CPU", 360, 1440, 0, 0, "2.511", "0.8820", ""),
)

LOCATIONS: tuple[tuple[str, str, str], ...] = (
    ("FIN-01", "Finland 1", "FI"),
    ("FIN-02", "Finland 2", "FI"),
    ("FIN-03", "Finland 3", "FI"),
    ("ICE-01", "Iceland 1", "IS"),
)
"""Code, name, country code."""

IMAGES: tuple[str, ...] = tuple(sorted({name for family in FAMILIES.values() for name in family.supported_os}))
"""Every `image_type` that some instance type supports."""
