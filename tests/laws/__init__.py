"""Laws: does it hold for any value, any plan, any order, any death?"""
