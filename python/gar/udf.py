# SPDX-License-Identifier: Apache-2.0
"""User functions: Python functions and classes as expressions.

@gar.func
def shout(text: str) -> str:
    return text.upper() + "!"

frame.select(shout(gar.col("name")))
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import threading
import types
import typing

from gar import _checks, _native, _runner
from gar.datatype import DataType
from gar.expressions import Expression

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gar.dataframe import DataFrame

__all__ = ["RetryAfterError", "cls", "func", "method", "udf"]

RetryAfterError = _runner.RetryAfterError

_ON_ERROR = {None: "raise", "raise": "raise", "null": "null", "ignore": "null", "log": "log"}


class _Options:
    """What a user said about how a function shall run, checked."""

    __slots__ = (
        "batch_size",
        "concurrency",
        "cpus",
        "gpu_memory",
        "gpu_strategy",
        "gpus",
        "inherit_devices",
        "is_auto",
        "memory",
        "on_error",
        "retries",
        "thread_safe",
        "use_process",
    )

    def __init__(
        self,
        what: str,
        *,
        cpus: Any = None,
        gpus: Any = None,
        gpu_memory: Any = None,
        memory: Any = None,
        use_process: Any = None,
        max_concurrency: Any = None,
        max_retries: Any = None,
        on_error: Any = None,
        batch_size: Any = None,
        thread_safe: Any = False,
        gpu_strategy: Any = None,
        inherit_devices: Any = False,
        ray_options: Any = None,
    ) -> None:
        self.cpus = _amount(what, "cpus", cpus)
        self.gpus = _amount(what, "gpus", gpus) or 0.0
        if self.gpus > 1 and self.gpus != int(self.gpus):
            raise _native.GarValueError(
                f"{what}: gpus greater than 1 must be an integer, got {_checks.shown(gpus)}"
            )
        self.gpu_memory = None if gpu_memory is None else _bytes(f"{what}: gpu_memory", gpu_memory)
        self.memory = None if memory is None else _bytes(f"{what}: memory", memory)
        self.use_process = None if use_process is None else _checks.flag(f"{what}: use_process", use_process)
        self.is_auto = isinstance(max_concurrency, str)
        self.concurrency: int | None = None
        if self.is_auto and max_concurrency != "auto":
            raise _native.GarValueError(
                f"{what}: max_concurrency must be a number or 'auto', got {_checks.shown(max_concurrency)}"
            )
        if not self.is_auto and max_concurrency is not None:
            self.concurrency = _checks.integer(f"{what}: max_concurrency", max_concurrency, 1)
        self.retries = 0 if max_retries is None else _checks.integer(f"{what}: max_retries", max_retries, 0)
        if not isinstance(on_error, (str, type(None))) or on_error not in _ON_ERROR:
            raise _native.GarValueError(
                f"{what}: on_error must be 'raise', 'log' or 'ignore' (also 'null'), got {_checks.shown(on_error)}"
            )
        self.on_error = _ON_ERROR[on_error]
        self.batch_size = (
            None if batch_size is None else _checks.integer(f"{what}: batch_size", batch_size, 1)
        )
        self.thread_safe = _checks.flag(f"{what}: thread_safe", thread_safe)
        self.gpu_strategy = _checks.optional_text(f"{what}: gpu_strategy", gpu_strategy)
        if self.gpu_strategy not in (None, "pack", "spread"):
            raise _native.GarValueError(
                f"{what}: gpu_strategy must be 'pack' or 'spread', got {_checks.shown(gpu_strategy)}"
            )
        self.inherit_devices = _checks.flag(f"{what}: inherit_devices", inherit_devices)
        if ray_options is not None:
            raise _native.GarUnsupportedError(
                f"{what}: ray_options need Ray; this engine runs on one machine"
            )
        if self.cpus is not None and self.cpus > _cpu_count():
            raise _native.GarValueError(
                f"{what}: Requested {_number(self.cpus)} CPUs but found only {_cpu_count()} available"
            )

    def merged(self, what: str, given: dict[str, Any]) -> _Options:
        """The same with some options said anew (a method's over its class's)."""
        made = object.__new__(_Options)
        for name in _Options.__slots__:
            setattr(made, name, getattr(self, name))
        new = _Options(what, **given)
        names = {"max_concurrency": "concurrency", "max_retries": "retries"}
        for name, value in given.items():
            if value is not None:
                slot = names.get(name, name)
                setattr(made, slot, getattr(new, slot))
        return made

    def calls(self) -> int:
        """How many calls the CPUs asked for allow at once; 0: as many as there are threads."""
        return 0 if self.cpus is None or self.cpus <= 1 else max(1, int(_cpu_count() / self.cpus))

    def in_process(self, what: str, is_async: bool, is_class: bool) -> bool:
        """Does it run in worker processes?"""
        asked = (
            self.gpus > 0
            or self.gpu_memory is not None
            or bool(self.use_process)
            or (is_class and (self.is_auto or self.concurrency is not None) and not is_async)
        )
        wants_devices = self.gpus > 0 or self.gpu_memory is not None
        if self.gpu_strategy is not None and not wants_devices:
            raise _native.GarValueError(
                f"{what}: gpu_strategy says where shares of GPUs go; ask for some with gpus or gpu_memory"
            )
        if self.inherit_devices and wants_devices:
            raise _native.GarValueError(
                f"{what}: inherit_devices shows all devices of this process; it cannot go with gpus or gpu_memory"
            )
        if self.inherit_devices and not asked:
            raise _native.GarValueError(
                f"{what}: inherit_devices is for worker processes; add use_process=True, or leave it out"
            )
        if self.use_process is False and asked:
            raise _native.GarValueError(
                f"{what}: gpus, gpu_memory and max_concurrency of a class need worker processes; leave use_process out"
            )
        if self.memory is not None and not asked:
            raise _native.GarUnsupportedError(
                f"{what}: memory is booked for worker processes only; add use_process=True, or leave it out"
            )
        return asked

    def actors(self) -> tuple[int, bool]:
        """How many worker processes, and whether fewer are enough."""
        if not self.is_auto:
            return self.concurrency or 1, False
        room = [_cpu_count() / self.cpus] if self.cpus else []
        if self.gpus > 0 or self.gpu_memory is not None:
            devices = [one for one in _resources().devices if one.set_aside is None]
            of_device = 1 / min(self.gpus, 1) if self.gpus > 0 else math.inf
            room.append(sum(min(of_device, self._fitting(one.memory_bytes)) for one in devices))
            if self.gpus > 1:
                room[-1] = len(devices) / self.gpus
        if self.memory:
            room.append(_resources().memory_bytes / self.memory)
        return max(1, int(min(room, default=_cpu_count()) + 1e-6)), True

    def _fitting(self, memory: int | None) -> float:
        """How many actors the memory of a device has room for."""
        return memory // self.gpu_memory if memory and self.gpu_memory else 1 if self.gpu_memory else math.inf


def _resources() -> Any:
    from gar.machine import resources

    return resources()


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def _amount(what: str, name: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _native.GarTypeError(f"{what}: {name} must be a number, got {_checks.shown(value)}")
    if not value >= 0 or math.isinf(value):
        raise _native.GarValueError(f"{what}: {name} must be nonnegative, got {_checks.shown(value)}")
    return float(value)


def _bytes(what: str, value: Any) -> int:
    if isinstance(value, str):
        from gar import ResourceRequest

        return int(_checks.foreign(ResourceRequest, memory_bytes=value).memory_bytes)
    return _checks.integer(what, value, 0)


def _cpu_count() -> int:
    return len(os.sched_getaffinity(0))


# ---- return types


def _hint_of(function: Any) -> Any:
    """The return annotation, or inspect.Signature.empty."""
    try:
        return typing.get_type_hints(function).get("return", inspect.Signature.empty)
    except Exception:
        return getattr(function, "__annotations__", {}).get("return", inspect.Signature.empty)


def _type_of_hint(what: str, hint: Any) -> DataType:
    """The column type that a type hint stands for."""
    if isinstance(hint, DataType):
        return hint
    if hint is None or hint is type(None):
        return DataType.null()
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return _type_of_hint(what, typing.get_args(hint)[0])
    if origin is typing.Union or origin is types.UnionType:
        rest = [arg for arg in typing.get_args(hint) if arg is not type(None)]
        if len(rest) == 1:
            return _type_of_hint(what, rest[0])
    if isinstance(hint, type) and origin is None:
        if hint.__module__ == "numpy" and hasattr(hint, "dtype"):
            return DataType.from_numpy_dtype(hint)
        try:
            return DataType.infer_from_type(hint)
        except _native.GarUnsupportedError:
            pass
    shown = getattr(hint, "__name__", None) if origin is None else None
    raise _native.GarUnsupportedError(
        f"{what}: a column cannot have the type {shown or hint} that the function's hint says; give return_dtype"
    )


_STREAMS = ("Iterator", "Iterable", "Generator", "AsyncIterator", "AsyncIterable", "AsyncGenerator")


def _return_type(what: str, function: Any, given: Any, is_generator: bool) -> DataType:
    if given is not None:
        return DataType._from(given)
    hint = _hint_of(function)
    if hint is inspect.Signature.empty:
        raise _native.GarValueError(f"{what} has no return type: give return_dtype, or a type hint (-> int)")
    if is_generator:
        name = getattr(typing.get_origin(hint), "__name__", "")
        if name not in _STREAMS or not typing.get_args(hint):
            raise _native.GarValueError(
                f"{what} is a generator: give return_dtype, or a hint such as -> Iterator[int]"
            )
        hint = typing.get_args(hint)[0]
    return _type_of_hint(what, hint)


# ---- expressions


def _has_expression(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return any(isinstance(arg, Expression) for arg in (*args, *kwargs.values()))


def _expression(
    spec: _runner.Spec, options: _Options, dtype: DataType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Expression:
    """The call as an expression."""
    template = _runner.Template(args, kwargs)
    make = _actor_expression if spec.in_process else _here_expression
    made: Call = _native.restyle(make(spec, template, options, dtype, template.expressions), Call)
    made._parts = (spec, template, options, dtype)
    return made


class Call(Expression):
    """A call of a user function, as the function gives it: map_groups looks into it."""

    __module__ = "gar"
    __slots__ = ("_parts",)
    _parts: tuple[_runner.Spec, _runner.Template, _Options, DataType]

    def alias(self, name: str) -> Expression:
        made: Call = _native.restyle(super().alias(name), Call)
        made._parts = self._parts
        return made


def _here_expression(
    spec: _runner.Spec,
    template: _runner.Template,
    options: _Options,
    dtype: DataType,
    expressions: list[Any],
) -> Expression:
    """The call as an expression that threads of this process compute."""
    is_serial = spec.owner is not None and not options.thread_safe and not spec.is_async
    detail = []
    if is_serial:
        detail.append("one instance")
    if options.retries > 0:
        detail.append(f"{options.retries} retries")
    if options.on_error != "raise":
        detail.append(f"on error {options.on_error}")
    return _native.user_function(
        spec.name,
        str(dtype),
        options.batch_size or 0,
        1 if is_serial else options.calls(),
        spec.is_expanding,
        spec.is_grouped,
        ", ".join(detail) or None,
        functools.partial(_runner.Runner, spec, template),
        expressions,
    )


def _actor_expression(
    spec: _runner.Spec,
    template: _runner.Template,
    options: _Options,
    dtype: DataType,
    expressions: list[Any],
) -> Expression:
    """The call as an expression that worker processes compute."""
    from gar import _worker

    cloudpickle = _checks.package("cloudpickle", f"UDF '{spec.name}' in worker processes")
    there = spec.for_process()
    make = functools.partial(_runner.ProcessActor, there, template, str(dtype))
    try:
        code = _pickled(cloudpickle, make)
    except Exception as error:
        raise _native.GarValueError(
            f"UDF '{spec.name}' cannot be sent to worker processes: {_runner.told(error)}"
        ) from error
    count, takes_fewer = options.actors()
    detail = [f"{'up to ' if takes_fewer else ''}{count} actor{'s' if count > 1 else ''}"]
    for name, amount in (("CPUs", options.cpus), ("GPUs", options.gpus)):
        if amount:
            detail.append(f"{_number(amount)} {name} each")
    return _native.actor_function(
        spec.name,
        str(dtype),
        options.batch_size or 0,
        count,
        takes_fewer,
        options.gpu_strategy == "spread",
        options.inherit_devices,
        -1.0 if options.cpus is None else options.cpus,
        options.gpus if options.gpus > 0 else -1.0,
        -1 if options.memory is None else options.memory,
        -1 if options.gpu_memory is None else options.gpu_memory,
        {"raise": 0, "null": 1, "log": 2}[options.on_error],
        options.retries,
        _worker.command(),
        code,
        ", ".join(detail),
        expressions,
    )


def _pickled(cloudpickle: Any, made: Any) -> bytes:
    """By cloudpickle, but code keeps the name of its file, so that tracebacks from there show the lines."""
    import collections
    import io

    reduce_code = cloudpickle.Pickler.dispatch_table.get(types.CodeType)

    def with_file(code: types.CodeType) -> Any:
        constructor, args, *rest = reduce_code(code)
        args = tuple(code.co_filename if arg == "<dynamic-code>" else arg for arg in args)
        return (constructor, args, *rest)

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        dispatch_table = cloudpickle.Pickler.dispatch_table
        if reduce_code is not None:
            dispatch_table = collections.ChainMap({types.CodeType: with_file}, dispatch_table)

    file = io.BytesIO()
    Pickler(file).dump(made)
    return file.getvalue()


def map_groups(df: DataFrame, keys: list[Any], call: Any) -> DataFrame:
    """df.groupby(keys).map_groups(call): rows come in runs of equal keys, numbered, and each run is one call."""
    from gar.dataframe import DataFrame
    from gar.window import Window

    if not isinstance(call, Call):
        raise _native.GarTypeError(
            f"map_groups takes a call of a function of columns, as in map_groups(f(col('a'))), got {_checks.shown(call)}"
        )
    spec, template, options, dtype = call._parts
    what = f"UDF '{spec.name}'"
    if not spec.is_batch:
        raise _native.GarTypeError(
            f"{what} works on single rows; map_groups needs a function of columns: gar.func.batch, gar.method.batch or gar.udf"
        )
    if options.batch_size is not None:
        raise _native.GarValueError(f"{what}: a call of map_groups has one group; leave batch_size out")
    if options.on_error != "raise":
        raise _native.GarUnsupportedError(f"{what}: on_error={options.on_error!r} is not for map_groups")
    if spec.in_process:
        raise _native.GarUnsupportedError(f"{what}: map_groups runs in this process only")
    names = [key.name() for key in keys]
    taken = {*names, call.name()}
    hidden = [
        name
        for name in (f"#{i}" for i in range(len(taken) + len(template.expressions) + 1))
        if name not in taken
    ]
    number, inputs = hidden[0], hidden[1 : len(template.expressions) + 1]
    columns = [one.alias(name) for one, name in zip(template.expressions, inputs, strict=True)]
    order = Window().order_by(*(_native.column(name) for name in names))
    rank = _native.call("dense_rank").over(order).cast("int64").alias(number)
    runs = DataFrame._of(df._frame.select([*keys, *columns])).with_columns({number: rank}).sort(number)
    made = _here_expression(
        spec.for_groups(), template, options, dtype, [_native.column(name) for name in (number, *inputs)]
    )
    return runs.select(*names, made.alias(call.name()))


def _spec(
    name: str, function: Any, options: _Options, is_batch: bool, owner: _runner.Owner | None = None
) -> _runner.Spec:
    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    is_expanding = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    what = f"UDF '{name}'"
    if is_batch and is_expanding:
        raise _native.GarUnsupportedError(
            f"{what}: a generator works row by row; it cannot be a batch function"
        )
    if is_expanding and options.on_error != "raise":
        raise _native.GarUnsupportedError(f"{what}: on_error={options.on_error!r} is not for generators")
    if options.is_auto and (owner is None or is_async):
        raise _native.GarValueError(
            f"{what}: max_concurrency='auto' is for classes in worker processes: as many as fit"
        )
    if options.concurrency is not None and not is_async and owner is None:
        raise _native.GarValueError(
            f"{what}: max_concurrency is for async functions (rows at work at once) and classes; "
            "a plain function runs on as many threads as cpus= allows"
        )
    in_process = options.in_process(what, is_async, owner is not None)
    if in_process and is_expanding:
        raise _native.GarUnsupportedError(f"{what}: a generator runs in this process only")
    return _runner.Spec(
        name=name,
        function=function,
        owner=owner,
        is_batch=is_batch,
        is_async=is_async,
        is_expanding=is_expanding,
        retries=options.retries,
        on_error=options.on_error,
        at_once=options.concurrency or _runner.ASYNC_ROWS,
        thread_safe=options.thread_safe,
        in_process=in_process,
    )


def _refuse_unnest(what: str, unnest: Any) -> None:
    if _checks.flag(f"{what}: unnest", unnest):
        raise _native.GarUnsupportedError(
            f"{what}: unnest needs struct columns, which this version does not have"
        )


def _named(function: Any) -> str:
    name = getattr(function, "__name__", None)
    if not isinstance(name, str):
        name = type(function).__name__
    return "lambda" if name == "<lambda>" else name


def _callable(what: str, function: Any) -> Any:
    if isinstance(function, type) or not callable(function):
        raise _native.GarTypeError(f"{what} takes a function, got {_checks.shown(function)}")
    return function


class Func:
    """A Python function over columns. Called with an expression it gives an expression, else it runs at once."""

    __module__ = "gar"

    def __init__(self, function: Any, return_dtype: Any, options: _Options, is_batch: bool) -> None:
        functools.update_wrapper(self, function)
        self.name = _named(function)
        self._options = options
        self._spec = _spec(self.name, function, options, is_batch)
        self.return_dtype = _return_type(
            f"UDF '{self.name}'", function, return_dtype, self._spec.is_expanding
        )

    @property
    def is_batch(self) -> bool:
        return self._spec.is_batch

    @property
    def is_async(self) -> bool:
        return self._spec.is_async

    @property
    def is_generator(self) -> bool:
        return self._spec.is_expanding

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not _has_expression(args, kwargs):
            return self._spec.function(*args, **kwargs)
        return _expression(self._spec, self._options, self.return_dtype, args, kwargs)

    def with_concurrency(self, max_concurrency: int) -> Func:
        """The same with another bound of the rows that an async function has at work at once."""
        options = self._options.merged(f"UDF '{self.name}'", {"max_concurrency": max_concurrency})
        return Func(self._spec.function, self.return_dtype, options, self._spec.is_batch)

    def with_ray_options(self, **options: Any) -> Func:
        raise _native.GarUnsupportedError("ray_options need Ray; this engine runs on one machine")

    def __reduce__(self) -> Any:
        return (Func, (self._spec.function, self.return_dtype, self._options, self._spec.is_batch))

    def __repr__(self) -> str:
        return f"<gar.func {self.name} -> {self.return_dtype}>"


def _decorate(make: Callable[[Any], Any], function: Any) -> Any:
    """With or without parentheses."""
    return make if function is None else make(function)


class _FuncDecorator:
    """@gar.func: a function of one row's values; @gar.func.batch: of whole columns."""

    def __call__(
        self,
        fn: Any = None,
        *,
        return_dtype: Any = None,
        unnest: bool = False,
        cpus: float | None = None,
        gpus: float = 0,
        gpu_memory: int | str | None = None,
        gpu_strategy: str | None = None,
        inherit_devices: bool = False,
        memory: int | str | None = None,
        use_process: bool | None = None,
        max_concurrency: int | None = None,
        max_retries: int | None = None,
        on_error: str | None = None,
        ray_options: Any = None,
    ) -> Any:
        """A function of one row's values: plain, async, or a generator that gives several rows for one.

        return_dtype: the column's type, if the function has no type hint. cpus: CPUs that one call needs; fewer calls
        run at once. gpus, gpu_memory ("6GiB"): in a worker process that sees just these devices; gpu_strategy: shares go where least is
        left ("pack") or most ("spread"). use_process: in a worker process, though it needs no device; inherit_devices: it sees
        those of this one; memory: what is booked for it, and the most it may hold. max_concurrency: of an async function, rows at work at once (64). max_retries: tries of a row after
        its first, with growing pauses. on_error: "raise", "log" (null and a line in the log) or "ignore" (null).
        """

        def make(function: Any) -> Func:
            what = f"UDF '{_named(_callable('func', function))}'"
            _refuse_unnest(what, unnest)
            options = _Options(
                what,
                cpus=cpus,
                gpus=gpus,
                gpu_memory=gpu_memory,
                gpu_strategy=gpu_strategy,
                inherit_devices=inherit_devices,
                memory=memory,
                use_process=use_process,
                max_concurrency=max_concurrency,
                max_retries=max_retries,
                on_error=on_error,
                ray_options=ray_options,
            )
            return Func(function, return_dtype, options, False)

        return _decorate(make, fn)

    def batch(
        self,
        fn: Any = None,
        *,
        return_dtype: Any = None,
        unnest: bool = False,
        batch_size: int | None = None,
        cpus: float | None = None,
        gpus: float = 0,
        gpu_memory: int | str | None = None,
        gpu_strategy: str | None = None,
        inherit_devices: bool = False,
        memory: int | str | None = None,
        use_process: bool | None = None,
        max_concurrency: int | None = None,
        max_retries: int | None = None,
        on_error: str | None = None,
        ray_options: Any = None,
    ) -> Any:
        """A function of whole columns: it gets gar.Series and gives a Series, a list, a numpy or an Arrow array.

        batch_size: exact rows of each call but the last. return_dtype is needed. The other options are those of gar.func.
        """

        def make(function: Any) -> Func:
            what = f"UDF '{_named(_callable('func.batch', function))}'"
            _refuse_unnest(what, unnest)
            if return_dtype is None:
                raise _native.GarValueError(f"{what}: a batch function needs return_dtype")
            options = _Options(
                what,
                cpus=cpus,
                gpus=gpus,
                gpu_memory=gpu_memory,
                gpu_strategy=gpu_strategy,
                inherit_devices=inherit_devices,
                memory=memory,
                use_process=use_process,
                max_concurrency=max_concurrency,
                max_retries=max_retries,
                on_error=on_error,
                batch_size=batch_size,
                ray_options=ray_options,
            )
            return Func(function, return_dtype, options, True)

        return _decorate(make, fn)


func = _FuncDecorator()


# ---- classes


class _MethodDecorator:
    """@gar.method and @gar.method.batch: options of one method of a class made by gar.cls."""

    def __call__(
        self,
        fn: Any = None,
        *,
        return_dtype: Any = None,
        unnest: bool = False,
        max_retries: int | None = None,
        on_error: str | None = None,
    ) -> Any:
        """A method of one row's values; what it says goes before what the class says."""
        return self._mark(fn, False, return_dtype, unnest, {"max_retries": max_retries, "on_error": on_error})

    def batch(
        self,
        fn: Any = None,
        *,
        return_dtype: Any = None,
        unnest: bool = False,
        batch_size: int | None = None,
        max_retries: int | None = None,
        on_error: str | None = None,
    ) -> Any:
        """A method of whole columns, as gar.func.batch."""
        given = {"max_retries": max_retries, "on_error": on_error, "batch_size": batch_size}
        return self._mark(fn, True, return_dtype, unnest, given)

    @staticmethod
    def _mark(fn: Any, is_batch: bool, return_dtype: Any, unnest: bool, given: dict[str, Any]) -> Any:
        def mark(function: Any) -> Any:
            what = f"method '{_named(_callable('method', function))}'"
            _refuse_unnest(what, unnest)
            if is_batch and return_dtype is None:
                raise _native.GarValueError(f"{what}: a batch method needs return_dtype")
            _Options(what, **given)
            try:
                function.__gar_method__ = (is_batch, return_dtype, given)
            except AttributeError as error:  # a builtin
                raise _native.GarTypeError(f"{what} is no function of Python: wrap it in one") from error
            return function

        return _decorate(mark, fn)


method = _MethodDecorator()


class UserClass:
    """A class whose methods work over columns. Calling it keeps the arguments; the class is constructed once for each
    query, when the first rows come."""

    __module__ = "gar"

    def __init__(self, wrapped: type, options: _Options, name: str) -> None:
        functools.update_wrapper(self, wrapped, updated=())
        self._wrapped = wrapped
        self._options = options
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Instance:
        return Instance(self, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_wrapped":
            raise _native.GarAttributeError("the class is not made yet")
        return getattr(self._wrapped, name)

    def __repr__(self) -> str:
        return f"<gar.cls {self._name}>"


class Instance:
    """What calling a class of gar.cls gives: its methods with expressions are expressions; with plain values they run on an
    object of this process, made at the first such call."""

    __module__ = "gar"

    def __init__(self, user_class: UserClass, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        wrapped = user_class._wrapped
        self._class = user_class
        self._owner = _runner.Owner(wrapped, args, kwargs, user_class._name)
        self._local: Any = None
        self._lock = threading.Lock()

    def _object(self) -> Any:
        with self._lock:
            if self._local is None:
                self._local = self._owner.construct()
            return self._local

    def _bound(self, name: str, function: Any) -> BoundMethod:
        is_batch, return_dtype, given = getattr(function, "__gar_method__", (False, None, {}))
        full = self._class._name if name == "__call__" else f"{self._class._name}.{name}"
        options = self._class._options.merged(f"UDF '{full}'", given)
        return BoundMethod(self, name, full, function, is_batch, return_dtype, options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise _native.GarAttributeError(f"{self._class._name} has no attribute {name}")
        found = inspect.getattr_static(self._class._wrapped, name, None)
        return self._bound(name, found) if inspect.isfunction(found) else getattr(self._object(), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found = inspect.getattr_static(self._class._wrapped, "__call__", None)
        if not inspect.isfunction(found):
            raise _native.GarTypeError(f"{self._class._name} has no __call__; name one of its methods")
        return self._bound("__call__", found)(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<an instance of gar.cls {self._class._name}>"


class BoundMethod:
    """A method of an instance, to be called with expressions or plain values."""

    __module__ = "gar"

    def __init__(
        self,
        instance: Instance,
        attribute: str,
        name: str,
        function: Any,
        is_batch: bool,
        return_dtype: Any,
        options: _Options,
    ) -> None:
        functools.update_wrapper(self, function)
        self._instance = instance
        self._attribute = attribute
        self.name = name
        self._function = function
        self._is_batch = is_batch
        self._return_dtype = return_dtype
        self._options = options

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not _has_expression(args, kwargs):
            return getattr(self._instance._object(), self._attribute)(*args, **kwargs)
        spec = _spec(self.name, self._function, self._options, self._is_batch, self._instance._owner)
        dtype = _return_type(f"UDF '{self.name}'", self._function, self._return_dtype, spec.is_expanding)
        return _expression(spec, self._options, dtype, args, kwargs)


def cls(
    class_: Any = None,
    *,
    cpus: float | None = None,
    gpus: float = 0,
    gpu_memory: int | str | None = None,
    gpu_strategy: str | None = None,
    inherit_devices: bool = False,
    memory: int | str | None = None,
    use_process: bool | None = None,
    max_concurrency: int | str | None = None,
    max_retries: int | None = None,
    on_error: str | None = None,
    name_override: str | None = None,
    ray_options: Any = None,
    thread_safe: bool = False,
) -> Any:
    """A class whose methods work over columns and share what its constructor made.

    One object for each query, constructed once, when the first rows come; its close(), where it has one, is called at the
    query's end. Its calls run one after the other unless thread_safe=True. With max_concurrency=n, gpus or gpu_memory it
    is constructed once in each of n (or one) worker processes instead, each with its own devices; max_concurrency="auto": one at
    first, and more, as many as fit on the machine now, while rows wait. Options are those of gar.func.
    """

    def make(wrapped: Any) -> UserClass:
        if not isinstance(wrapped, type):
            raise _native.GarTypeError(f"cls takes a class, got {_checks.shown(wrapped)}")
        name = _checks.optional_text("name_override", name_override) or wrapped.__name__
        options = _Options(
            f"class '{name}'",
            cpus=cpus,
            gpus=gpus,
            gpu_memory=gpu_memory,
            gpu_strategy=gpu_strategy,
            inherit_devices=inherit_devices,
            memory=memory,
            use_process=use_process,
            max_concurrency=max_concurrency,
            max_retries=max_retries,
            on_error=on_error,
            ray_options=ray_options,
            thread_safe=thread_safe,
        )
        return UserClass(wrapped, options, name)

    return _decorate(make, class_)


# ---- the older decorator


class UDF:
    """A function or class made by gar.udf: it gets Series, and gives a Series, a list, a numpy or an Arrow array."""

    __module__ = "gar"

    def __init__(self, inner: Any, return_dtype: DataType, given: dict[str, Any], init: Any = None) -> None:
        functools.update_wrapper(self, inner, updated=())
        self.inner = inner
        self.name = _named(inner)
        self.return_dtype = return_dtype
        self._given = given
        self._init = init
        self._options = _Options(f"UDF '{self.name}'", **given)
        self._owner = None
        if isinstance(inner, type):
            args, kwargs = init or ((), {})
            self._owner = _runner.Owner(inner, args, kwargs, self.name)
            if not inspect.isfunction(inspect.getattr_static(inner, "__call__", None)):
                raise _native.GarTypeError(f"UDF '{self.name}': the class has no __call__")
        elif self._options.concurrency is not None or self._options.is_auto:
            raise _native.GarValueError(
                f"UDF '{self.name}': concurrency is for classes, which keep a state; this is a function"
            )

    def _with(self, **changes: Any) -> UDF:
        return UDF(self.inner, self.return_dtype, {**self._given, **changes}, self._init)

    def override_options(
        self,
        *,
        num_cpus: Any = ...,
        num_gpus: Any = ...,
        memory_bytes: Any = ...,
        batch_size: Any = ...,
        ray_options: Any = ...,
    ) -> UDF:
        """The same function with other options; those not named stay."""
        named = {"cpus": num_cpus, "gpus": num_gpus, "memory": memory_bytes, "batch_size": batch_size}
        named["ray_options"] = ray_options
        return self._with(**{name: value for name, value in named.items() if value is not ...})

    def with_concurrency(self, concurrency: int) -> UDF:
        """The same class with so many instances."""
        return self._with(max_concurrency=concurrency)

    def run_on_process(self, use_process: bool) -> UDF:
        """The same function in a process of its own, or not."""
        return self._with(use_process=use_process)

    def with_init_args(self, *args: Any, **kwargs: Any) -> UDF:
        """The same class constructed with these arguments."""
        if self._owner is None:
            raise _native.GarValueError(
                f"UDF '{self.name}': init arguments are for classes; this is a function"
            )
        return UDF(self.inner, self.return_dtype, self._given, (args, kwargs))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not _has_expression(args, kwargs):
            inner = self.inner if self._owner is None else self._owner.construct()
            return inner(*args, **kwargs)
        function = self.inner if self._owner is None else self.inner.__call__
        spec = _spec(self.name, function, self._options, True, self._owner)
        return _expression(spec, self._options, self.return_dtype, args, kwargs)

    def __repr__(self) -> str:
        return f"<gar.udf {self.name} -> {self.return_dtype}>"


def udf(
    *,
    return_dtype: Any,
    num_cpus: float | None = None,
    num_gpus: float | None = None,
    memory_bytes: int | None = None,
    batch_size: int | None = None,
    concurrency: int | None = None,
    use_process: bool | None = None,
    ray_options: Any = None,
) -> Callable[[Any], UDF]:
    """The older way to write a function of whole columns, or a class with __call__; gar.func.batch and gar.cls are newer."""
    dtype = DataType._from(return_dtype)
    given = {
        "cpus": num_cpus,
        "gpus": num_gpus,
        "memory": memory_bytes,
        "batch_size": batch_size,
        "max_concurrency": concurrency,
        "use_process": use_process,
        "ray_options": ray_options,
    }

    def make(inner: Any) -> UDF:
        if not callable(inner):
            raise _native.GarTypeError(f"udf takes a function or a class, got {_checks.shown(inner)}")
        return UDF(inner, dtype, given)

    return make


def apply(expression: Expression, function: Any, return_dtype: Any) -> Expression:
    """expression.apply(function, return_dtype)"""
    name = _named(_callable("apply", function))
    options = _Options(f"UDF '{name}'")
    spec = _spec(name, function, options, False)
    return _expression(spec, options, DataType._from(return_dtype), (expression,), {})
