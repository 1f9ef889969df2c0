"""What a recipe may say: frozen pydantic models, which also give the JSON Schema.

Every scalar of a recipe is read as text; pydantic turns it into what the field says.
`extends` and `variables` are worked in before, so that a `Recipe` no longer has them.
"""

from datetime import date
from typing import Annotated

from pydantic import AfterValidator, Field

from envbuild.recipe import cutoff as cutoffs
from envbuild.recipe import words
from envbuild.recipe.build import Build
from envbuild.recipe.service import Limits, Part, Service, Text
from envbuild.target import Platform

Name = Annotated[Text, AfterValidator(words.name)]
ServiceName = Annotated[Text, AfterValidator(words.service_name)]
Version = Annotated[Text, AfterValidator(words.version)]
Code = Annotated[Text, AfterValidator(words.finding_code)]
CondaName = Annotated[Text, AfterValidator(words.conda_name)]


class TargetWish(Part):
    """What the environment must run on."""

    platforms: Annotated[tuple[Platform, ...], Field(min_length=1)] = Field(
        default=("linux-64",),
        description="Platforms to lock for, as conda subdirs.",
        examples=[["linux-64", "linux-aarch64"]],
    )
    gpus: tuple[Annotated[Text, AfterValidator(words.gpu)], ...] = Field(
        default=(),
        description="GPUs it must run on, such as `h100`; none for CPU only.",
        examples=[["h100"]],
    )
    driver: Annotated[Text, AfterValidator(words.version_range)] | None = Field(
        default=None,
        description="Driver versions it may run on, with exclusions: `>=550.54.14,!=550.90.07`.",
        examples=[">=550.54.14,!=550.90.07"],
    )
    driver_branches: tuple[Annotated[Text, AfterValidator(words.branch)], ...] = Field(
        default=(),
        description="Driver branches it may run on, such as `R550`; none: any.",
        examples=[["R550"]],
    )
    firmware: Text | None = Field(
        default=None,
        description="GPU firmware that is asked for, as the vendor writes it.",
        examples=["96.00.99.00.01"],
    )
    glibc: Annotated[Text, AfterValidator(words.glibc)] = Field(
        default="2.28",
        description="Oldest glibc it must run on.",
        examples=["2.28"],
    )
    cuda: Version | None = Field(
        default=None,
        description="CUDA version that the driver offers (`__cuda`); default: the triangle's.",
        examples=["12.4"],
    )
    archspec: Annotated[Text, AfterValidator(words.archspec)] | None = Field(
        default=None,
        description="Oldest CPU it must run on (`__archspec`), such as `x86_64_v3`.",
        examples=["x86_64_v3"],
    )


class Triangle(Part):
    """The set that has to agree: CUDA, cuDNN and the framework."""

    cuda: Version | None = Field(
        default=None,
        description="CUDA version, such as `12.4`.",
        examples=["12.4"],
    )
    cudnn: Version | None = Field(
        default=None,
        description="cuDNN version, such as `9.1`.",
        examples=["9.1"],
    )
    framework: Annotated[Text, AfterValidator(words.framework)] | None = Field(
        default=None,
        description="Framework and version, such as `pytorch ==2.4.0`.",
        examples=["pytorch ==2.4.0"],
    )


class Index(Part):
    """A PyPI index besides the default one."""

    name: Name = Field(
        description="Name that the lock uses; never its address.",
        examples=["torch-cu124"],
    )
    url: Annotated[Text, AfterValidator(words.http_url)] = Field(
        description="Address (http or https) without a login.",
        examples=["https://download.example.org/whl/cu124"],
    )
    packages: Annotated[
        tuple[Annotated[Text, AfterValidator(words.pypi_name)], ...], Field(min_length=1)
    ] = Field(
        description="Packages that come from it, and from nowhere else.",
        examples=[["torch", "torchvision"]],
    )
    cutoff: Annotated[Text, AfterValidator(cutoffs.check_of_index)] | None = Field(
        default=None,
        description="Its own cutoff: an instant, a date, an age, or `none` where it has no dates.",
        examples=["none"],
    )


class Smoke(Part):
    """What must work before a generation may become current."""

    imports: tuple[Annotated[Text, AfterValidator(words.module)], ...] = Field(
        default=(),
        description="Modules that must import. A recipe that extends adds to them.",
        examples=[["torch"]],
    )
    commands: tuple[Annotated[Text, AfterValidator(words.command)], ...] = Field(
        default=(),
        description="Commands that must succeed. A recipe that extends adds to them.",
        examples=[['python -c "import torch; torch.rand(2)"']],
    )


class Allow(Part):
    """A finding that is let through, with the reason and the last day on which it is."""

    code: Code = Field(
        description="Code of the finding, such as `weak-hash`.",
        examples=["weak-hash"],
    )
    reason: Text = Field(
        description="Why it is let through.",
        examples=["the nvidia label publishes md5 only"],
    )
    until: date = Field(
        description="Last day (UTC) on which it is, such as 2027-03-31.",
        examples=["2027-03-31"],
    )
    where: Text | None = Field(
        default=None,
        description="Only where this package, file or path is meant.",
        examples=["linux-64"],
    )


class Recipe(Part):
    """A recipe as written, with `extends` and variables already worked in."""

    name: Name = Field(
        description="The file's name without its ending.",
        examples=["trainer"],
    )
    description: str = Field(
        default="",
        description="One line for people.",
        examples=["PyTorch on H100 for the training jobs"],
    )
    target: TargetWish = Field(
        default=TargetWish(), description="What it must run on: platforms, GPUs, driver, glibc."
    )
    triangle: Triangle = Field(
        default=Triangle(), description="CUDA, cuDNN and the framework, which have to agree."
    )
    python: Annotated[Text, AfterValidator(words.python)] | None = Field(
        default=None,
        description="Python: `3.10`, `3.11.7`, or a range such as `>=3.11,<3.15`.",
        examples=["3.11"],
    )
    channels: Annotated[
        tuple[Annotated[Text, AfterValidator(words.channel)], ...], Field(min_length=1)
    ] = Field(
        default=("conda-forge",),
        description="conda channels, highest priority first; `host` alone: the machine's Python.",
        examples=[["nvidia", "conda-forge"]],
    )
    conda: tuple[Text, ...] = Field(
        default=(),
        description="conda match specs, such as `pytorch::pytorch 2.4.0 py3.10_*`. A recipe that "
        "extends adds to them; the same package replaces.",
        examples=[["pytorch::pytorch 2.4.0 py3.11_cuda12.4_*"]],
    )
    link_scripts: tuple[CondaName, ...] = Field(
        default=(),
        description="Packages whose link scripts may run. A recipe that extends adds to them.",
        examples=[["glib"]],
    )
    indexes: tuple[Index, ...] = Field(
        default=(),
        description="PyPI indexes besides the default. A recipe that extends adds to them; the "
        "same name replaces.",
    )
    pypi: tuple[Text, ...] = Field(
        default=(),
        description="PyPI requirements (PEP 508, with hashes). A recipe that extends adds to "
        "them; the same package replaces.",
        examples=[["transformers >=4.44"]],
    )
    build: Build = Field(default=Build(), description="Compiler, and how wheels are rebuilt.")
    services: dict[ServiceName, Service] = Field(
        default_factory=dict, description="Services of the environment by name."
    )
    slice: Limits | None = Field(
        default=None, description="cgroup limits of all its services together."
    )
    smoke: Smoke = Field(
        default=Smoke(), description="What must work before a generation becomes current."
    )
    allow: tuple[Allow, ...] = Field(
        default=(),
        description="Findings that are let through. A recipe that extends adds to them.",
    )
    cutoff: Annotated[Text, AfterValidator(cutoffs.check)] | None = Field(
        default=None,
        description="Only what was uploaded strictly before: an RFC 3339 instant with zone, a "
        "date (its whole day counts), or an age such as `14d`.",
        examples=["2026-11-30"],
    )

    @property
    def on_host_python(self) -> bool:
        """Whether the interpreter comes from the machine (`channels: [host]`)."""
        return self.channels == ("host",)
