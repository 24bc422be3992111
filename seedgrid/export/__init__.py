"""Exports of pictures: scripts, bundles, sheets and films."""
