"""Model adapters: is what a provider says what the run hears, and the other way round?"""
