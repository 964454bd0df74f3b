"""Parses the recipe, and renders it as conda-forge would, for every platform that it is for. Needs py-rattler-build."""

import tomllib
from pathlib import Path

from rattler_build import RenderConfig, Stage0Recipe, VariantConfig
from rattler_build.tool_config import PlatformConfig

PLATFORMS = ["linux-64", "linux-aarch64", "osx-64", "osx-arm64"]

here = Path(__file__).parent
recipe = Stage0Recipe.from_file(here / "recipe.yaml")
variants = VariantConfig.from_file(here / "variants.yaml")
workspace = tomllib.loads((here / "../../Cargo.toml").read_text())["workspace"]
version = workspace["package"]["version"]
for platform in PLATFORMS:
    own = PlatformConfig(target_platform=platform, build_platform=platform, host_platform=platform)
    rendered = recipe.render(variants, RenderConfig(platform=own))
    packages = sorted(f"{own.recipe.package.name} {own.recipe.package.version}" for own in rendered)
    assert packages == [f"daimc {version}", f"daimc-cli {version}"], packages
    print(f"{platform}: {', '.join(packages)}")
