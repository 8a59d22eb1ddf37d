"""One training of a study: by what it is found among the records, and the command that does it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lrsa.data.normalise import Normaliser
from lrsa.models.registry import get as get_model
from lrsa.models.registry import model_options
from lrsa.problems.catalogue import get
from lrsa.problems.problem import Source
from lrsa.training.choose import for_problem, settled
from lrsa.training.config import RunConfig, TrainConfig
from lrsa.training.configure import configured
from lrsa.training.recipes import Recipe

BY_TORCH = {"kernels": False}
"""Tables rank models, and only LRSA has kernels."""
DEFAULTS = {**asdict(TrainConfig()), **BY_TORCH}
_ASKED: dict[str, tuple[Any, tuple[dict[str, Any], str]]] = {}
"""Job -> the problem and the model that were known then, its configuration and key."""


@dataclass(frozen=True)
class Job:
    """One training of a study, as it would be typed."""

    problem: str
    model: str
    scale: str
    source: Source = "generated"
    recipe: Recipe = "ours"
    matched: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    samples: int | None = None
    """Training cases; None: those of the scale."""

    def configuration(self) -> dict[str, Any]:
        """All that decides the outcome."""
        return dict(self._settled[0])

    @property
    def key(self) -> str:
        """The name of its record: of what differs from the defaults, so that a new option changes none."""
        return self._settled[1]

    @property
    def _settled(self) -> tuple[dict[str, Any], str]:
        """Configuration and key: a page asks for them thousands of times."""
        asked = json.dumps([getattr(self, name) for name in self.__dataclass_fields__], sort_keys=True)
        about = (get(self.problem), get_model(self.model))
        if asked not in _ASKED or _ASKED[asked][0] != about:
            made = self._configuration()
            _ASKED[asked] = about, (made, self._key(dict(made)))
        return _ASKED[asked][1]

    def _configuration(self) -> dict[str, Any]:
        problem = get(self.problem)
        scale = problem.scale(self.scale)
        choice = for_problem(problem, scale, self.model)
        options, train = settled(choice, self.recipe, self.options, {**BY_TORCH, **self.train})
        origin = problem.schema(scale.fidelity, 0).origin().provenance if self.source == "generated" else {}
        made = {
            "problem": self.problem,
            "source": self.source,
            "data": origin,
            "cases": [self.samples or scale.samples, scale.test, scale.stride[self.source]],
            "model": self.model,
            "options": {**self._default_options(), **options},
            "train": asdict(train),
            "recipe": self.recipe,
            "matched": self.matched,
        }
        return json.loads(json.dumps(made))

    def _key(self, made: dict[str, Any]) -> str:
        for name, default in (("options", self._default_options()), ("train", DEFAULTS)):
            made[name] = {k: v for k, v in made[name].items() if k not in default or v != default[k]}
        content = json.dumps(made, sort_keys=True)
        return f"{self.problem}-{self.model}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"

    def decides(self, configuration: Mapping[str, Any]) -> bool:
        """Whether this is what was trained; an option that was not there yet is as it is by default."""
        made = self.configuration()
        for name in ("options", "train"):
            made[name] = {k: v for k, v in made[name].items() if k in configuration[name]}
        return made == configuration

    def resolved(self) -> tuple[RunConfig, Normaliser]:
        """As it is run on its data, which is made where it is not there."""
        config, survey, _ = configured(
            self.problem,
            self.model,
            self.source,
            self.scale,
            self.recipe,
            self.options,
            {**BY_TORCH, **self.train},
            self.matched,
            self.samples,
        )
        return config, survey.normaliser

    def _default_options(self) -> dict[str, Any]:
        options = model_options(self.model).items()
        return {name: option.default for name, option in options if option.default is not option.empty}

    def typed(self) -> str:
        """The command that trains it."""
        words = [f"lrsa train {self.problem} --model {self.model} --scale {self.scale}"]
        words += [f"--source {self.source}"] if self.source == "official" else []
        words += [f"--recipe {self.recipe}", *(["--matched"] if self.matched else [])]
        words += [f"--samples {self.samples}"] if self.samples else []
        for prefix, given in (("model", self.options), ("train", {**BY_TORCH, **self.train})):
            words += [_option(prefix, name.replace("_", "-"), value) for name, value in given.items()]
        return " ".join(words)


def _option(prefix: str, name: str, value: Any) -> str:
    """As it is typed: what is true or false is a word by itself."""
    if isinstance(value, bool):
        return f"--{prefix}.{'' if value else 'no-'}{name}"
    return f"--{prefix}.{name} {value}"
