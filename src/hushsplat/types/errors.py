"""The package's own exceptions: one line each, naming the thing, what was expected, what came and what to do."""


def printable(text: str) -> str:
    """One line that any terminal shows as it is: newlines and control characters from files become escapes."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


class HushsplatError(Exception):
    """Anything a user can cause; the command line prints it as one line and exits with 2."""

    def __str__(self) -> str:
        return printable(super().__str__())


class SceneError(HushsplatError):
    """A splat file or a set of Gaussians is not usable."""


class CaptureError(HushsplatError):
    """A capture (photographs with poses) is not usable."""


class TrackError(HushsplatError):
    """A camera track is not usable."""


class CameraError(HushsplatError):
    """A camera is not usable."""


class RenderError(HushsplatError):
    """A renderer was asked for something it cannot do."""


class EngineError(RenderError):
    """An engine cannot go on: its device is lost, out of memory, or too small for the picture; another engine may."""


class DenoiseError(HushsplatError):
    """A denoiser was set or fed in a way it cannot work with."""


class WeightsError(HushsplatError):
    """The weights of a denoiser are not usable."""


class EvaluationError(HushsplatError):
    """An evaluation cannot run, or its results are not usable."""


class JobError(HushsplatError):
    """A job cannot run, or was lost."""


class ViewError(HushsplatError):
    """The viewer was asked for something it cannot do."""


class TrainingError(HushsplatError):
    """A run of training cannot begin, or cannot go on."""
