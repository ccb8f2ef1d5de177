"""The packages of the built-in machines, for ports that are put together in a test."""

from steersman.adapters.installed_machines import InstalledPackages

PACKAGES = InstalledPackages()
