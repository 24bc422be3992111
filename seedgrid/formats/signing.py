"""Signs pictures by the C2PA standard, if `SEEDGRID_C2PA` names a certificate.

Needs c2pa-python, an optional package. The signature is a chunk of the finished file; pixels and
texts stay. No time stamp server is asked.

Source: https://spec.c2pa.org, https://github.com/contentauth/c2pa-python
"""

import io
import os
import re
from pathlib import Path
from typing import Any, Final

from PIL import Image

from seedgrid import __version__
from seedgrid.core.errors import LibraryError
from seedgrid.formats.own_texts import source_type

VARIABLE: Final = "SEEDGRID_C2PA"

_PART: Final = re.compile(r"-----BEGIN ([A-Z ]+)-----[A-Za-z0-9+/=\s]+-----END \1-----")
_SETTINGS: Final = {"builder": {"thumbnail": {"enabled": False}}}


def signed(png: bytes, *, has_start: bool) -> bytes:
    """Return a PNG file with a signature if `SEEDGRID_C2PA` is set, else unchanged.

    Raises:
        LibraryError: `c2pa_missing` without c2pa-python; `c2pa_refused` with the reason.
    """
    named = os.environ.get(VARIABLE)
    if not named:
        return png
    try:
        import c2pa
    except ImportError as error:
        raise LibraryError("c2pa_missing", value=VARIABLE) from error
    try:
        chain, key = _read(Path(named))
        context = c2pa.Context.from_dict(_SETTINGS)
        signer = c2pa.Signer.from_info(c2pa.C2paSignerInfo(b"es256", chain, key, None))
        target = io.BytesIO()
        with signer, c2pa.Builder(_manifest(has_start=has_start), context) as builder:
            builder.sign(signer, "image/png", io.BytesIO(png), target)
    except (OSError, ValueError, c2pa.C2paError) as error:
        reason = str(error).split("\n")[0][:200]
        raise LibraryError("c2pa_refused", value=named, reason=reason) from error
    return target.getvalue()


def check() -> None:
    """Check that pictures can be signed, if `SEEDGRID_C2PA` is set.

    Raises:
        LibraryError: As `signed`.
    """
    pixel = io.BytesIO()
    Image.new("RGB", (1, 1)).save(pixel, "PNG")
    signed(pixel.getvalue(), has_start=False)


def _read(path: Path) -> tuple[bytes, bytes]:
    """Return the certificate chain and the private key of a PEM file."""
    parts = [(found[1], found[0].encode()) for found in _PART.finditer(path.read_text("ascii"))]
    certificates = [text for kind, text in parts if kind == "CERTIFICATE"]
    keys = [text for kind, text in parts if kind == "PRIVATE KEY"]
    if not certificates or len(keys) != 1:
        raise ValueError("it holds no certificate, or not one PRIVATE KEY (PKCS #8)")
    return b"\n".join(certificates) + b"\n", keys[0] + b"\n"


def _manifest(*, has_start: bool) -> dict[str, Any]:
    made = {"action": "c2pa.created", "digitalSourceType": source_type(has_start=has_start)}
    return {
        "claim_generator_info": [{"name": "SeedGrid", "version": __version__}],
        "assertions": [{"label": "c2pa.actions", "data": {"actions": [made]}}],
    }
