# ruff: noqa: E501 - a hash is as long as it is
"""More hashes that belong to version 1 of the definition: what only tests compare. They never change."""

from __future__ import annotations

from typing import Final

SCHEDULERS: Final[dict[str, str]] = {
    "DDIM": "96ff8dc02f9fb7130bffdff004523fb4530d523d4affa6c1be5ba90cf6064ce1",
    "DDPM": "bfeb3ba1c06044187e0940b068f2ee414e2fa2b55bf064484c38de7f4044df43",
    "PNDM": "e45c96428b4b90a05f5beadb8739d249d6dccd08c563be4c03a3690f34f5760d",
    "Euler": "9bda99ac83cb3ebb1deeb4d5cb29f1cf8052f02d798f02ea5131c884e9ffc8bd",
    "Euler a": "3dd869c6de2a26a8093336a67106e4a67d22a1251b8aaaed248a3e761ac7f058",
    "Heun": "00680d86a340ad3094cf6d8a97a5c690848a574dc333b03306422325c6cdc2ed",
    "DPM2": "2f4700287aa3c758632df4adaaeca98eda816d780b5257e773b0b6869dcd1f80",
    "DPM2 a": "044fca46e41dfe21f555d40befb511d96cd0c9b9079657ea3b72e5153a598862",
    "DPM++ 2M": "358bdd2b8afe1c92e1865a434bec67a4588e58f5bd720fbf4760961d07832494",
    "DPM++ 2M Karras": "24033e57752882ec2baa1c0891b3c3be971f4cd599bd4dec747e0cc73ba9972b",
    "DPM++ 2M SDE": "8d845a6a54504a751369d1345771438c43cbff7630b63fe42346f8538b5cb1a7",
    "DPM++ 2M SDE Karras": "a8fa0f4b402ccbe1ea1b8af8dda5735f371297cbaeee5f8bbd3844eaab3ce645",
    "DPM++ SDE": "b76e5c5c6b23a05fa4bef737440557cf850373c3f9094b98c53c0f227fd74030",
    "DPM++ SDE Karras": "ac4279d4b4d89a666a696fd83b4f3425e02325302558a8a04ac3f16e50a4bd2b",
    "DEIS": "6f86e10235efb983304d8aa16df488d33fc2fb223c18220b0cf1918fb986a4b8",
    "UniPC": "c7bb67ed70a8d26aa761249b9ec0bfb236d63c01224927d28f5be3a18d053c72",
    "LCM": "9e5e72f27799650a4b9c5630cd786f3d150c4c706e6b38a057968f4d5ae7eccf",
    "Flow Euler": "853e09a3c66df3e6c5a221e0b33fd262133436ed6d2f4e219b04e25d197133b9",
    "Flow DPM++ 2M": "2092e697fa01d93d1a22ddd2449a5c95c49abcaebef9f7fb9b36da7f2048f6b1",
    "Flow UniPC": "0698d166989d7fbb5339b99d9775245098e0129b45241e844dbc354a136d8cd4",
}
"""Of four steps of each scheduler on offer (child.py)."""

FAMILIES: Final[dict[str, str]] = {
    "sd": "22101d63542db724099a7ffd743c16cdeaa231a1e3ca5f078859f9dda74a27ab",
    "sdxl": "53efab466b12f0debfc1cb47863b521291d135db6f1df7148d766e859c6195ea",
    "sd3": "0527e658d8491ca63b12d0c570d3d5a24edb5feadd70e86790ac26d4f1282998",
    "flux": "49f7a222cc7a7f3bcd3e1f42c28d51e99dd03444bf0f31ac258c8a2a39618dec",
    "bundled": "15616bcc252fc54dd5ee3601a24e5eca3110c8fcabb474fead0f169a7aa7f59b",
    "bundled/Euler a": "8b96ba356e8c93668c0f9a2ef772cb89df6ba2a8a5781fe78afae9d75f95196d",
    "bundled/DPM++ 2M Karras": "5e72174e1ce68edacfbfa7cdad42983d1857ab6ed10e32d45671ebb8d490f1a9",
    "sd/Euler a": "6c44b85d8ce507c984ce637348865bc45bdf11c9604d10ac1d5c3e432273e963",
    "sd/DPM++ 2M Karras": "6f1698a5fe454fbfb253efad8f9f5739ac5088c6d51540c6dd1202d39e986af8",
    "sdxl/Euler a": "702f4bd36249dcee4f56530a640878b440c990243483a1473e964f1cd0a08044",
    "sdxl/DPM++ 2M Karras": "f06d3fff922c8a6e6028b04516c87ccd36f28609344b6b4131cd68aac323f9f9",
    "sd3/Flow DPM++ 2M": "3423c82ba77bc889355e146e19340c321e9274e77ca9b5ab9594eb35cf35bbfe",
    "sd3/Flow UniPC": "a80a60ceb9f4ac0ed31b1eef30324740944c4b024c0ff4653c8470c307ca260d",
    "flux/Flow DPM++ 2M": "d0d604e36f8214b6a71acaf3d194b6ed855748de1aeab326fa23d265d6ad3219",
    "flux/Flow UniPC": "c785eb7af5e452e855d749f2ecf1bf3221b2bb1b082d87cfc556195ce91b2953",
    "lcm": "cc7c8bf6bb6adb70e99ad5e50654f164bb7f4f81e78944aaa772a041e33c3264",
    "pixart": "ec288165658fb85fc43cdc2dde1b4a0557942abdcb3a994aaca585b137372dd1",
    "sana": "c96de067fcbdbe715c253e6cff1beac75c8420eecdc6fa5febcb5e960960720b",
    "ddpm": "f1741225cb0caedd01ada08fb52a4288e13e280305a55fadb56d9736291ff784",
    "ddim": "7dee18fc306597a290562b3e45930684fc0cb3dfb853a2c93b38baf51f192573",
    "stable-unclip": "4619809c0e870ce1d5a4a69afde593e408e47e88883c74861192ccd08417d018",
}
"""Of two tiny pictures of each small pipeline, and with other schedulers than its own.

Those of `bundled` belong to the weights in assets/model; see child.py.
"""
