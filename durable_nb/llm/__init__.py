"""Models: what `Agent(llm=...)` takes, and what answers a run.

Whatever is handed in goes through `adopt`, and is a model by `protocol` from there on. `scripted`
plays a script. `local` asks a small model on this machine: `local_server` runs it, `local_prompts`
writes for it. `hosted` asks somebody's server through pydantic-ai, with these rooms:

    named, settings   what the user writes: read before anything of a provider is imported
    connect, lean     from the name to pydantic-ai's model of it, and its client made quick
    translate, kept   a transcript as pydantic-ai's messages, and a reply as one of ours
    asking            one attempt: streamed, whole, priced
    failures, retry   what went wrong, and whether to ask again
    stream            who hears the text while it comes
    secrets           no key is ever said
"""
