"""What a recipe may say about rebuilt wheels: frozen pydantic models."""

from typing import Annotated, Literal

from packaging.utils import canonicalize_name
from pydantic import AfterValidator, Field

from envbuild.recipe import compilers, source_words, words
from envbuild.recipe.service import Part, Text, Variable


def _name(text: str) -> str:
    """Check a project's name and keep it as written, so that its place is found."""
    words.pypi_name(text)
    return text


def _memory(text: str) -> str:
    """Check an amount of memory; a compiler always takes some, and never all there is."""
    if text == "infinity":
        message = "expected a size such as \"4G\", found 'infinity'"
        raise ValueError(message)
    return words.byte_size(text)


Memory = Annotated[Text, AfterValidator(_memory)]
ProjectName = Annotated[Text, AfterValidator(_name)]


class PackageBuild(Part):
    """Where the sources of one rebuilt package come from, and what its build needs.

    Without `git` and `archive` it is built from the sdist of its locked version.
    """

    git: Annotated[Text, AfterValidator(source_words.git_url)] | None = Field(
        default=None,
        description="Repository of its sources (https, http, ssh or file), without a login; "
        "needs `commit`.",
        examples=["https://github.com/pytorch/pytorch"],
    )
    tag: Annotated[Text, AfterValidator(source_words.git_ref)] | None = Field(
        default=None,
        description="Tag that has to point to the commit; a tag that was moved is an error.",
        examples=["v2.4.0"],
    )
    commit: Annotated[Text, AfterValidator(source_words.git_commit)] | None = Field(
        default=None,
        description="The commit that is built, in full; it pins every submodule.",
        examples=["d990dada86a8ad94882b5c23e859b88c0c255bda"],
    )
    submodules: bool = Field(
        default=True,
        description="Whether its submodules are fetched as well.",
        examples=["false"],
    )
    archive: Text | None = Field(
        default=None,
        description="Source archive (.tar.gz, .zip) or source folder on this machine; a relative "
        "path begins at the recipe's folder.",
        examples=["../vendor/mypackage-1.2.tar.gz"],
    )
    sha256: Annotated[Text, AfterValidator(source_words.sha256)] | None = Field(
        default=None,
        description="SHA-256 of the archive.",
        examples=["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"],
    )
    flags: tuple[Text, ...] = Field(
        default=(),
        description="Compiler flags after those of `build.flags`.",
        examples=[["-DNDEBUG"]],
    )
    environment: dict[Variable, str] = Field(
        default_factory=dict,
        description="Variables of its build, such as switches of its setup.py.",
        examples=[{"USE_MPI": "0"}],
    )
    jobs: Annotated[int, Field(ge=1, le=1024)] | None = Field(
        default=None,
        description="Most compilers at a time, in place of `build.jobs`.",
        examples=[4],
    )
    memory_per_job: Memory | None = Field(
        default=None,
        description="Memory that one of its compilers takes, in place of `build.memory_per_job`.",
        examples=["6G"],
    )
    portable: bool | None = Field(
        default=None,
        description="Whether auditwheel makes its wheel portable, in place of `build.portable`.",
        examples=["true"],
    )


class Build(Part):
    """How wheels are rebuilt, and the compiler that torch.compile finds at run time."""

    compiler: Annotated[Text, AfterValidator(compilers.normal)] | None = Field(
        default=None,
        description="`gcc 12` (or `gcc >=12`): wheels that GCC 12 or a newer one built will do. "
        "`gcc ==12.*`: GCC 12 exactly. Rebuilds use that version, and activation sets CC, CXX and "
        "CUDAHOSTCXX to it.",
        examples=["gcc 12"],
    )
    cxx_abi: Literal["new", "old"] | None = Field(
        default=None,
        description="String ABI of libstdc++ that wheels need to have.",
        examples=["new"],
    )
    cuda_archs: tuple[Annotated[Text, AfterValidator(words.cuda_arch)], ...] = Field(
        default=(),
        description="Compute capabilities: `9.0`, `9.0a`, `10.0f`, `9.0+PTX`.",
        examples=[["9.0", "9.0+PTX"]],
    )
    flags: tuple[Text, ...] = Field(
        default=(),
        description="Further compiler flags.",
        examples=[["-O3"]],
    )
    when: Literal["auto", "always", "never"] = Field(
        default="auto",
        description="Whether wheels are rebuilt: where needed, always, never.",
        examples=["auto"],
    )
    packages: dict[ProjectName, PackageBuild] = Field(
        default_factory=dict,
        description="The packages that may be rebuilt, by their PyPI names, each with its sources "
        "(`{}`: its sdist). Without: the framework, and what links it.",
    )
    jobs: Annotated[int, Field(ge=1, le=1024)] | None = Field(
        default=None,
        description="Most compilers at a time. Without: as many as cores and memory allow.",
        examples=[8],
    )
    memory_per_job: Memory | None = Field(
        default=None,
        description="Memory that one compiler takes, from which the number of jobs follows.",
        examples=["4G"],
    )
    portable: bool = Field(
        default=False,
        description="Whether auditwheel puts the libraries that a rebuilt wheel needs into it, so "
        "that it runs on every host of the target's glibc.",
        examples=["true"],
    )

    @property
    def sources(self) -> dict[str, PackageBuild]:
        """The packages that may be rebuilt, by their normalized names."""
        return {canonicalize_name(name): package for name, package in self.packages.items()}

    @property
    def wish(self) -> compilers.CompilerWish | None:
        """The compiler that is asked for, or None."""
        return None if self.compiler is None else compilers.parse(self.compiler)
