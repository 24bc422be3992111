# ruff: noqa: E501 - a hash is as long as it is
"""The hashes that belong to version 1 of the definition (docs/portable.md). They never change."""

from __future__ import annotations

from typing import Final

GOLDEN: Final[dict[str, str]] = {
    "exp": "d8b26284615be431897b0d9cddc9d1467546020001c67a7ecdffc0ecc474bfa1",
    "expm1": "81b56f9b23eee486e0375800970dfc052b8ab474379ed7264c95632239566974",
    "log": "118eb7132c534651d17efd38f2534c03de6aa75adb53d3731935234deddb5c85",
    "sin": "4d43a383e5ff0e9edef46c53ce8ba7113b28cd79151334d1cc2ec5f7f57068a2",
    "cos": "af416a1cf16e88ab58c7805e5e768a50120f38d22640c610493a4cf9b5209e31",
    "tan": "d6128c932dc530bbbdf74c246f4d1b3b01a272dfde882478131d2ef08919bfe6",
    "tanh": "67e789c70a0fd77ec5fa15f773a5330a325117dcbef24cd70dc55b23f776b8e9",
    "sqrt": "8da9113c258609ebb0a5652a6c54aa13874dda0edbe7bb883cb4bbdb0fdff1e4",
    "rsqrt": "7365f7366c9ee82f6e2876f5ed98b6ea0af87c820078bc5179c7de4660b00605",
    "atan": "bd60ceb931a8ded8fb923c54ca537635fe83134b7aaf0aced44b3e9104e8487e",
    "acos": "0b067054a66c3be9f7992f0886d3fc1041264fe0bdeb194e657c30dadff4adb9",
    "silu": "bdccdc1d4c8c30e4517d588242e0d6fee5112742b770f7a046fd493947e53738",
    "sigmoid": "c234d1e3653e3a493e1255443f8ee5625f4e436e6b36a393c45ebca76fdf732f",
    "gelu": "f9b3c1de52263bc4917664f01a1b838f46ee87ae88a764f7bfcb0d36ac579322",
    "relu": "43cded7c63a391b42b2bf3bef049f34ac888b347aba07fdeef4029e002c60d79",
    "pow": "9ea34da208d279b89a0d66b3598d70c131ff4bc8c0cfb6bdefe7ddb9cb5b3382",
    "reciprocal": "d563bc1bc5d930b7862b49067078284367d754d48bc2cf56d0a15be5281bb2d2",
    "add": "7fe52e71eed15249d8560713467c52ca182f7c4041fca7b2e9b453957ac6ddbe",
    "sub": "f8f8ae99f30fb622aedeb474683ed6756ce991e6ce5e0c9a264ab808a0f1558d",
    "rsub": "55c9636fd2b9d520272f4cb8e2559f8c3f5984a64de695134b0e54579722234b",
    "div": "29cf28af7a64fba26bc974280ebb9ac9b0c2dce3de5390ff7c406038f7d402da",
    "clamp": "e8aac92133b75c5fd31786297c31cfc55f1930c8016f1f692190320675fbe205",
    "clamp_min": "2c16e3bde104996ff256e3a5636b02f4b72f59059721cf7a053f6663521e5b6e",
    "clamp_max": "6f75c5dc1e94897708568cffcfda664f9ee651ddc716adb6849570e69d844a7c",
    "maximum": "039879b812c795fc7ff2bdf807a72e4d60425207ba86b02bfaf67f625cbd4e78",
    "minimum": "be5055b15424f1a7c5c62c746b98e4f9c17a71ad2fb5ac55a74bd6287391c055",
    "amax": "9b93f667208e8d90e0dff74dd75ce31b0d08cca008971eeefa4859ef5e78581f",
    "amin": "ce120a28861c170553754ba3ee9320ed29744dc916e97dea1282a2910f71d5b8",
    "addcmul": "aa589991e0a625c080b9176c19557235236ada4d8b5c090138679aa2d712d42a",
    "addcdiv": "29ebbeb9cd983099ab1ea9e5759879c3ae1ce185a0d76cb122edeb00e4351bb4",
    "lerp": "00a9bc75ecd153638e1ffb2bf820124c7482c64061d47d76c6aa1ac5d85f63b6",
    "mean": "d6a0c41d579ca4037cb05b209fd1072f7e17025ed1aae89e85ce42703fcb5b5e",
    "sum": "34e6876fb88c36bd2b1480737f7c2c681a72229d37ba42c883433645f569dbd9",
    "var": "9245f9a11fb807422ee84817d0b1a03ffec9e4a367a4a98e7d663346cdac856f",
    "std": "66431079415dbd235a1040200a312098b708166eb92b907e4436292b2844bcb3",
    "linalg_vector_norm": "0b6a1d1a8eecf6b9691f08e705c78d7008024c0abe43897e63ae1bd661ebd6d0",
    "cumsum": "dab84b453d8f45d90a57d8fa14b98c4638f33636a28aa3bd82e2e08116930099",
    "cumprod": "559f1fba4fb33ff97ad92d74257e9f05a8ffdb462d350b8f4f26c8b4f0827a19",
    "linspace": "83f33080550fa75dfb2ff894841986bb10d9f0c3dd10ad070aa37cf43a9a9b54",
    "arange": "bf01a9cd3a71469091b3fb3692a43cecd5eacc696d00eab4f725ce9e8f9dbf2a",
    "_softmax": "a185ef0b875b8118e8813e86c1b004abe6701bfbc2829602f758549244dba56e",
    "_safe_softmax": "ae45ec322c842ee8b32a310f0a99585938c3ca1ae92dd86ca12e690b6d5a3a26",
    "native_group_norm": "3ea6c5bbd31252f6f3cebd8b365b841a5a1acd58220c4f021998e965262e4d2a",
    "native_layer_norm": "87ae4f51277222b5d7506f84d4d8079f8a30adef3e3ed28b61a74670cee4d77e",
    "dot": "7461b1056298d222253bdb8d54b64450c944f5166464c046adc760b02ff26a6f",
    "bmm": "2a673a41f05622525c54d4b8cdc2aa42afa8aad424034cd673d2b321fd46c89b",
    "mm": "a72e53eef2ec1096f6e8b99f74ab45bb11788df3b16a71fda3614d048c2c24cb",
    "addmm": "96d1961bbb91d1795e20db34d3dc70e62b59cef081d0c6a5af37fc8341f18d33",
    "baddbmm": "a64a47f2ab278c23ff0f65cba4b4d3963f9e61dc4e56f5258df5a6de34b1b368",
    "linear": "aa17a1f370daf4c1ff5d78a2499990f3eeb90c78260cf0563de146a68a1c88ea",
    "convolution": "3bfc6676e8a544fbbe5b4013738e5d77eb52ff35a7572c8fd69818da0611c86d",
    "scaled_dot_product_attention": "746495ab62ca6afe4f5d236e1f9591581aa491f44f12326a4eafd97e30e40cdd",
    "randn": "5afc891948502d7f3c6c60d9f3d20ec37243a19a781ca2bebc17be348a808304",
    "normal_": "b77d554a5e167f77e73f9b929f8abf7263550060f285a30021a8c5cfe088bb90",
    "_linalg_solve_ex": "3b5815f6770e9099b6c78aa8f559d0bb9dc4bc3fdc1d0afc4213527d0c650f6b",
}
"""SHA-256 of what each case of cases.py gives."""

GRID: Final = "4d6401f5a851c781c86d7a447e59214c71c6be0269f4ba7e37684147de7d322f"
"""Of the bundled model's tiny grid (selftest.py)."""

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
"""Of four steps of each scheduler on offer (tests/portable/child.py)."""

FAMILIES: Final[dict[str, str]] = {
    "sd": "22101d63542db724099a7ffd743c16cdeaa231a1e3ca5f078859f9dda74a27ab",
    "sdxl": "53efab466b12f0debfc1cb47863b521291d135db6f1df7148d766e859c6195ea",
    "sd3": "0527e658d8491ca63b12d0c570d3d5a24edb5feadd70e86790ac26d4f1282998",
    "flux": "49f7a222cc7a7f3bcd3e1f42c28d51e99dd03444bf0f31ac258c8a2a39618dec",
    "bundled": "78fc0f91cd4043027b8eade304932d9abe87150d56224625c68224611ea6a6e4",
    "bundled/Euler a": "c9ef02112d24a8560f324f732661d99487ceedd813b65784c40c1518876cbc89",
    "bundled/DPM++ 2M Karras": "af48667bf0684946214cd66de63996c840e9fe35c0ea0760ff5248b50e795393",
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

Those of `bundled`, and `GRID`, belong to the weights in assets/model; see tests/portable/child.py.
"""
