"""Other tools' sampler names, and SeedGrid's name of the same sampler.

A sampler without an equal is not in the table: the importer says so.
"""

from typing import Final

_ALIKE: Final[dict[str, tuple[str, ...]]] = {
    "DDIM": ("ddim", "ddim_v3", "k_ddim", "ddim trailing"),
    "DDPM": ("ddpm",),
    "PNDM": ("pndm", "plms", "k_plms"),
    "Euler": ("euler", "k_euler", "sample_euler"),
    "Euler a": ("euler a", "euler_a", "euler_ancestral", "k_euler_ancestral", "k_euler_a"),
    "Heun": ("heun", "k_heun"),
    "DPM2": ("dpm2", "dpm_2", "k_dpm_2", "kdpm_2"),
    "DPM2 a": ("dpm2 a", "dpm_2_ancestral", "k_dpm_2_ancestral", "kdpm_2_a", "k_dpm_2_a"),
    "DPM++ 2M": ("dpm++ 2m", "dpmpp_2m", "k_dpmpp_2m", "k_dpmpp_2"),
    "DPM++ 2M Karras": ("dpm++ 2m karras", "dpmpp_2m karras", "dpmpp_2m_k", "k_dpmpp_2m karras"),
    "DPM++ 2M SDE": ("dpm++ 2m sde", "dpmpp_2m_sde", "dpmpp_2m_sde_gpu", "k_dpmpp_2m_sde"),
    "DPM++ 2M SDE Karras": (
        "dpm++ 2m sde karras",
        "dpmpp_2m_sde karras",
        "dpmpp_2m_sde_gpu karras",
        "dpmpp_2m_sde_k",
        "k_dpmpp_2m_sde karras",
    ),
    "DPM++ SDE": ("dpm++ sde", "dpmpp_sde", "dpmpp_sde_gpu", "k_dpmpp_sde"),
    "DPM++ SDE Karras": (
        "dpm++ sde karras",
        "dpmpp_sde karras",
        "dpmpp_sde_gpu karras",
        "dpmpp_sde_k",
        "k_dpmpp_sde karras",
    ),
    "DEIS": ("deis",),
    "UniPC": ("unipc", "uni_pc", "uni_pc_bh2", "unipc trailing"),
    "LCM": ("lcm",),
    "Flow Euler": ("flow euler", "euler flowmatch", "flowmatch euler"),
}

_PLAIN_SCHEDULES: Final = ("", "normal", "uniform", "native", "default")

OUR_NAMES: Final[dict[str, str]] = {
    f"{name} {schedule}".strip(): ours
    for ours, names in _ALIKE.items()
    for name in names
    for schedule in _PLAIN_SCHEDULES
}
"""SeedGrid's name by another tool's, in lower case, with its schedule of noise levels after it."""

A1111_AUTOMATIC: Final[dict[str, str]] = {
    "dpm++ 2m": "Karras",
    "dpm++ sde": "Karras",
    "dpm++ 2m sde": "Exponential",
    "dpm++ 2m sde heun": "Exponential",
    "dpm++ 2s a": "Karras",
    "dpm++ 3m sde": "Exponential",
    "dpm2": "Karras",
    "dpm2 a": "Karras",
}
"""The schedules that "Automatic" means in AUTOMATIC1111 1.9 and newer.

Source: https://github.com/AUTOMATIC1111/stable-diffusion-webui, modules/sd_samplers_kdiffusion.py
"""
